// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/engine.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cache/protocol/schema_check.hpp"
#include "comm/base/peer_error.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/overloaded.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kGatherBytesMax = std::size_t{32} << 20;
constexpr comm::ChannelId kChannel = comm::ChannelId::kStore;

void require_few_bytes(std::string const& mine) {
  GPUPS_REQUIRE(mine.size() <= kGatherBytesMax,
                "a rank gathers {} bytes in one call (the maximum is {}): gather them in parts", mine.size(),
                kGatherBytesMax);
}

// Returns the progress engine of the membership. Throws Error if the membership has had a Store before.
comm::ProgressEngine& engine_of(Group const& group) {
  GPUPS_REQUIRE(
      !group.impl().had_store,
      "a second Store is created on one membership of a Group (their messages could not be distinguished): put all "
      "tables into one Store, or use another Group for the second");
  return group.impl().engine();
}

}  // namespace

Engine::Engine(Group const& group, Stream const& stream, double wait_timeout_s)
    : group_(group),
      progress_(engine_of(group)),
      me_(group.rank()),
      ranks_(group.size()),
      limit_{wait_timeout_s, "StoreOptions::wait_timeout_s"},
      stream_(stream),
      messenger_(progress_.messenger(), stream_),
      round_(me_, ranks_, Clock{0}),
      executor_(me_, ranks_, stream_, messenger_, round_, tables_, placement_),
      requests_(me_, ranks_, stream_, messenger_, round_, tables_, placement_),
      exceptions_at_start_(std::uncaught_exceptions()) {
  group_.impl().had_store = true;
  executor_.on_complete = [this](Clock step, StepReport const& all) {
    signals_ = all.signal;
    if (!all.rejection.empty()) {
      std::lock_guard lock(mutex_);
      rejection_ = all.rejection;
    }
    requests_.serve_early();
    if (round_.is_of_step()) ++steps_;
    // The thread that trains goes on, and another one plans. Batches that are announced later see the plan.
    if (executor_.has_unplanned_step()) post([this] { executor_.wait_plan(); });
    complete_ = number(step) + 1;
  };
}

Engine::~Engine() {
  bool const unwinding = std::uncaught_exceptions() > exceptions_at_start_;
  if (unwinding && !started_) return;  // run_ranks() or the Group informs the other ranks
  bool closed = false;
  closing_ = true;
  try {
    if (!unwinding) progress_.wait_close(kChannel, limit_);
    closed = !unwinding;
  } catch (...) {  // NOLINT: the progress engine has informed the other ranks
  }
  if (!closed) progress_.abandon("an exception has ended its Store");
}

PlacementRules Engine::rules_of(StoreSchema const& schema) const {
  PlacementRules rules{.policy = schema.policy, .window = schema.placement_window};
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks_); ++q) {
    auto const per_host = static_cast<std::uint32_t>(schema.ranks_per_host);
    auto const& hosts = group_.impl().hosts;
    rules.hosts.push_back(per_host > 0 ? q / per_host : hosts.empty() ? 0 : hosts[q]);
  }
  bool const one_host = rules.hosts.front() == rules.hosts.back();
  if (one_host) rules.hosts.clear();
  if (rules.policy == PlacementPolicy::kAuto) {
    rules.policy = one_host ? PlacementPolicy::kStatic : PlacementPolicy::kAdaptive;
  }
  rules.bytes_min = bytes_min_of(schema.placement_bytes_min, one_host);
  return rules;
}

void Engine::start(Clock first, StoreSchema const& schema, KeyFormat keys) {
  round_ = Round(me_, ranks_, first);
  complete_ = number(first);
  for (auto const& table : tables_) table->allocate(stream_.device());
  placement_.start(stream_.device(), me_, ranks_, tables_.size());
  executor_.set_policy(rules_of(schema), schema.staleness);
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks_); ++q) {
    executor_.plain_keys().sent_to[q] = Rank{q} != me_ && sends_plain_keys(Rank{q}, keys);
  }
  started_ = true;
  schema_ = schema;
  progress_.start();
  progress_.post([this] {
    send_schema();  // the first message
    progress_.messenger().open(kChannel, *this);
  });
}

void Engine::send_schema() {
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks_); ++q) {
    if (Rank{q} == me_) continue;
    bool const plain = executor_.plain_keys().sent_to[q];
    messenger_.send(Rank{q}, SchemaMessage{encode_schema(schema_, tables_, plain)});
  }
}

void Engine::post(std::function<void()> task) {
  progress_.post([this, task = std::move(task)] {
    kernels::MemoryScope const scope(stream_);
    task();
  });
}

void Engine::received(Rank from, std::string_view body) {
  kernels::MemoryScope const scope(stream_);
  if (from == me_) throw_peer_error(from, me_, "sent a message to itself");
  auto const handle = kernels::Overloaded{
      [&](GradientPhase const& one) { round_.on_message(from, one); },
      [&](RefreshPhase const& one) { round_.on_message(from, one); },
      [&](LateFetch const& one) { executor_.late_fetches().on_message(from, one); },
      [&](LateForward const& one) { executor_.late_fetches().on_message(from, one); },
      [&](LateFetchReply const& one) { executor_.late_fetches().on_message(from, one); },
      [&](GatherPart const& one) { requests_.on_message(from, one); },
      [&](RowRequestHeader const& one) {
        // The other rank is informed soon that this Store has ended. If requests were served, more of them could follow
        // forever.
        bool const may_come_late = one.kind == RowRequestKind::kLookup || one.kind == RowRequestKind::kAssign ||
                                   one.kind == RowRequestKind::kErase;
        if (!may_come_late || !closing_ || !idle()) requests_.on_message(from, one);
      },
      [&](RowReplyHeader const& one) { requests_.on_message(from, one); },
      [&](SchemaMessage const& one) {
        executor_.plain_keys().received_from[number(from)] = check_schema(me_, schema_, tables_, from, one.bytes);
      },
  };
  std::visit(handle, read_message(from, body));
}

// Later sends to `peer` throw; see comm/progress/messenger.hpp.
void Engine::closed_by(Rank peer) {
  closed_.push_back(peer);
  any_closed_ = true;
  check_closed();
}

// Values of a late fetch count as missing only if a thread waits for them: a rank may end while late fetches that
// nobody waits for are in flight.
void Engine::check_closed() const {
  for (Rank const peer : closed_) {
    auto const late = executor_.pending_peers(Clock{reading_.load()});
    if (round_.lacks(peer) || requests_.lacks(peer) || std::find(late.begin(), late.end(), peer) != late.end()) {
      throw comm::PeerLost(peer, fmt::format("the Store of rank {} has ended", number(peer)));
    }
  }
}

bool Engine::progress(bool moved) {
  kernels::MemoryScope const scope(stream_);
  if (moved) times_.moved(round_.phase());
  bool did = false;
  while (auto const action = round_.next()) {
    executor_.execute(*action);
    times_.acted(*action);
    did = true;
  }
  check_closed();
  if (moved || did) publish();
  return did;
}

bool Engine::idle() const { return executor_.idle() && requests_.idle() && round_.phase() == Round::Phase::kTraining; }

void Engine::write_stats(Stats& stats) const {
  stats.steps = steps_.load();
  stats.late_keys = late_keys_.load();
  stats.late_batches = late_batches_.load();
  stats.remote_keys = remote_keys_.load();
  stats.remote_home_keys = remote_home_keys_.load();
  stats.leased_keys = leased_keys_.load();
  stats.leased_steps = leased_steps_.load();
  stats.leased_steps_max = leased_steps_max_.load();
  stats.moved_rows = moved_rows_.load();
  stats.rows_reserved = rows_reserved_.load();
  stats.owned_rows = owned_rows_.load();
  stats.index_growths = index_growths_.load();
  stats.round = times_.seconds();
  progress_.messenger().counters().write(stats);
}

void Engine::publish() {
  std::uint64_t rows = 0, owned = 0, growths = 0;
  for (auto const& table : tables_) {
    rows += table->rows_reserved();
    owned += table->rows_owned();
    growths += table->growths();
  }
  rows_reserved_ = rows;
  owned_rows_ = owned;
  index_growths_ = growths;
  late_keys_ = executor_.late_keys();
  late_batches_ = executor_.late_batches();
  remote_keys_ = executor_.remote_keys();
  remote_home_keys_ = executor_.remote_home_keys();
  moved_rows_ = executor_.moved_rows();
  auto const leased = executor_.leased().counts();
  leased_keys_ = leased.reads;
  leased_steps_ = leased.age;
  leased_steps_max_ = leased.age_max;
}

void Engine::throw_if_rejected() {
  std::string rejection;
  {
    std::lock_guard lock(mutex_);
    rejection.swap(rejection_);
  }
  if (!rejection.empty()) throw GradientError(rejection);
}

comm::PendingPeers Engine::pending_peers() const {
  std::vector<Rank> ranks = round_.pending_peers();
  if (!ranks.empty()) return {ranks, round_.pending_data()};
  ranks = executor_.pending_peers(round_.clock());
  if (!ranks.empty()) return {ranks, fmt::format("the rows of step {}", number(round_.clock()))};
  ranks = requests_.pending_peers();
  if (!ranks.empty()) return {ranks, requests_.pending_data()};
  return {{}, fmt::format("was at step {}", number(round_.clock()))};
}

void Engine::wait_invoke(std::function<void(Stream&)> const& task) {
  progress_.wait_invoke([&] {
    kernels::MemoryScope const scope(stream_);
    task(stream_);
  });
}

void Engine::announce(BatchPtr batch) {
  post([this, batch = std::move(batch)] { executor_.announce(batch); });
}

void Engine::wait_ready(PreparedBatch::Impl const& batch) {
  reading_ = number(batch.clock);
  if (any_closed_) progress_.post([] {});  // makes progress, so that check_closed() sees the new value of reading_
  wait([&batch] { return batch.ready.load(); });
}

void Engine::end_step(BatchPtr batch, std::uint32_t signal) {
  post([this, batch = std::move(batch), signal] { executor_.end_step(batch, signal); });
}

Engine::CollectiveCall::CollectiveCall(Engine& engine, std::string const& text)
    : engine_(engine), is_outermost_(engine.call_.empty()) {
  if (is_outermost_) engine.call_ = text.substr(0, kCallBytesMax);
}

std::vector<std::string> Engine::wait_allgather(std::string const& mine) {
  require_few_bytes(mine);
  return gather({mine}, limit_);
}

std::vector<std::string> Engine::wait_gather_to(Rank root, std::string const& mine) {
  require_few_bytes(mine);
  std::vector<std::string> of_ranks(static_cast<std::size_t>(ranks_));
  of_ranks[number(root)] = mine;
  return gather(std::move(of_ranks), limit_);
}

std::vector<std::string> Engine::wait_allgather_forever(std::string const& mine) {
  require_few_bytes(mine);
  return gather({mine}, comm::kNoLimit);
}

std::vector<std::string> Engine::gather(std::vector<std::string> mine, comm::WaitLimit const& limit) {
  auto const request = std::make_shared<GatherRequest>();
  GPUPS_ASSERT(!call_.empty());
  request->id = gathers_++;
  request->call = call_;
  request->mine = std::move(mine);
  progress_.post([this, request] { requests_.begin(request); });
  progress_.wait([request] { return request->done.load(); }, limit);
  return std::move(request->all);
}

void Engine::begin_rows(std::shared_ptr<RowRequest> const& request) {
  progress_.post_soon([this, request] {
    kernels::MemoryScope const scope(stream_);
    requests_.begin(request);
  });
}

void Engine::wait_rows(RowRequest const& request) {
  wait([&request] { return request.done.load(); });
}

}  // namespace gpups::cache
