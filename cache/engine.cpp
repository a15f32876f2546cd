// SPDX-License-Identifier: Apache-2.0
#include "cache/engine.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cache/same_tables.hpp"
#include "comm/only_errors.hpp"
#include "comm/peer_lost.hpp"
#include "gpups/error.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kGatherBytesMax = std::size_t{32} << 20;  // far below a message's, which has other fields
constexpr double kForever_s = 1e9;                              // for work of this rank's own, which no peer can delay

}  // namespace

Engine::Engine(Group const& group, Stream const& stream, double wait_timeout_s)
    : group_(group),
      transport_(*group.impl().transport),
      turner_(*group.impl().turner),
      me_(transport_.rank()),
      ranks_(transport_.size()),
      wait_timeout_s_(wait_timeout_s),
      stream_(stream),
      mail_(transport_, *group.impl().payload),
      round_(me_, ranks_, Clock{0}),
      exchange_(me_, ranks_, stream_, mail_, round_, tables_),
      requests_(me_, ranks_, stream_, mail_, round_, tables_),
      collective_mail_(mail_),
      collectives_(me_, ranks_, stream_, collective_mail_, Group::kAllreducesMax),
      exceptions_at_start_(std::uncaught_exceptions()) {
  exchange_.on_complete = [this](Clock step, Round::Report const& all) {
    signals_ = all.signal;
    if (!all.refusal.empty()) {
      std::lock_guard lock(mutex_);
      refusal_ = all.refusal;
    }
    ++steps_;
    complete_ = number(step) + 1;
  };
}

Engine::~Engine() {
  bool const unwinding = std::uncaught_exceptions() > exceptions_at_start_;
  std::string reason;
  if (started_) {
    try {
      // What this rank still owes the others, it gives before it goes.
      if (!unwinding) {
        wait_run([](Stream&) {});
        wait([this] { return idle_.load(); });
      }
    } catch (std::exception const& error) {
      reason = error.what();
    }
    turner_.stop();
  }
  transport_.on_arrival({});
  group_.impl().payload.reset();  // withdraws what is offered, and ends copies from arrays that go now
  if (unwinding) return;          // whoever catches the exception tells the others what it was
  try {
    reason.empty() ? transport_.leave() : transport_.fail(me_, reason);
  } catch (...) {  // NOLINT: nobody is left to tell
  }
}

void Engine::start(Clock first, std::uint64_t seed) {
  round_ = Round(me_, ranks_, first);
  complete_ = number(first);
  for (auto const& table : tables_) table->allocate(stream_.device());
  started_ = true;
  seed_ = seed;
  posts_.push_back([this] { tell_tables(); });  // before all else
  auto const wake = [this] { turner_.wake(); };
  transport_.on_arrival(wake);
  group_.impl().payload->on_arrival(wake);
  turner_.start([this] { return turn(); });
}

void Engine::tell_tables() {
  Message const message{.kind = MessageKind::kTables, .bytes = encode_tables(seed_, tables_)};
  for (int q = 0; q < ranks_; ++q) {
    Rank const other{static_cast<std::uint32_t>(q)};
    if (other != me_) mail_.send(other, message);
  }
}

void Engine::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    posts_.push_back(std::move(task));
  }
  turner_.wake();
}

bool Engine::take_posts() {
  std::vector<std::function<void()>> posts;
  {
    std::lock_guard lock(mutex_);
    posts.swap(posts_);
  }
  for (auto const& post : posts) post();
  return !posts.empty();
}

void Engine::dispatch(Mail::Received const& received) {
  auto const& [from, message] = received;
  switch (message.kind) {
    case MessageKind::kIn:
    case MessageKind::kOut:
      return round_.received(from, message);
    case MessageKind::kUrgent:
    case MessageKind::kUrgentAnswer:
      return exchange_.received(from, message);
    case MessageKind::kCollective:
      return mail_.received_within(from, &ByKind::reductions, collectives_.heard(from, message.id, message.bytes));
    case MessageKind::kTables:
      return check_same_tables(me_, seed_, tables_, from, message.bytes);
    default:
      return requests_.received(from, message);
  }
}

bool Engine::turn() {
  std::lock_guard turning(turning_);
  bool did = false;
  try {
    if (failed_) return false;
    times_.turn_begins(round_.phase());
    did |= take_posts();
    while (auto received = mail_.receive()) {
      dispatch(*received);
      did = true;
    }
    did |= mail_.progress();
    did |= collectives_.progress();
    if (did) times_.moved(round_.phase());
    while (auto const action = round_.next()) {
      exchange_.act(*action);
      times_.acted(action->step);
      did = true;
    }
    if (did) publish();
  } catch (...) {
    fail(std::current_exception());
    return true;
  }
  return did;
}

void Engine::write_stats(Stats& stats) const {
  stats.steps = steps_.load();
  stats.urgent_keys = urgent_keys_.load();
  stats.rows_reserved = rows_reserved_.load();
  stats.index_growths = index_growths_.load();
  stats.round = times_.seconds();
  mail_.counters().write(stats);
}

void Engine::publish() {
  std::uint64_t rows = 0, growths = 0;
  for (auto const& table : tables_) {
    rows += table->rows_reserved();
    growths += table->growths();
  }
  rows_reserved_ = rows;
  index_growths_ = growths;
  urgent_keys_ = exchange_.urgent_keys();
  idle_ = mail_.idle() && exchange_.idle() && collectives_.idle() && round_.phase() == Round::Phase::kTraining;
}

void Engine::fail(std::exception_ptr error) noexcept {
  Rank at_fault = me_;
  std::string why = "it failed for a reason that it does not know";
  try {
    std::rethrow_exception(error);
  } catch (comm::PeerLost const& lost) {
    at_fault = lost.peer();
    why = lost.why().empty() ? "it has left" : lost.why();
    error = std::make_exception_ptr(PeerError(
        at_fault,
        fmt::format("rank {} is lost ({}; {}): look at that rank's output, then go on from the last checkpoint",
                    number(at_fault), why, awaited().text)));
  } catch (PeerError const& of_peer) {
    at_fault = of_peer.peer();
    why = of_peer.what();
  } catch (std::exception const& own) {
    why = fmt::format("it failed: {}", own.what());
    error = comm::only_errors(error);
  } catch (...) {  // NOLINT: said above
  }
  {
    std::lock_guard lock(mutex_);
    failure_ = error;
    failed_ = true;
  }
  try {
    transport_.fail(at_fault, why);
  } catch (...) {  // NOLINT: the first error is the one to report
  }
}

void Engine::throw_if_failed() {
  if (!failed_) return;
  std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

void Engine::throw_if_refused() {
  std::string refusal;
  {
    std::lock_guard lock(mutex_);
    refusal.swap(refusal_);
  }
  if (!refusal.empty()) throw GradientError(refusal);
}

Engine::Awaited Engine::awaited() {
  std::vector<Rank> ranks = round_.awaited();
  std::string what = round_.awaiting();
  if (ranks.empty()) {
    ranks = exchange_.awaited();
    what = fmt::format("the rows of step {}", number(round_.clock()));
  }
  if (ranks.empty()) {
    ranks = requests_.awaited();
    what = "an answer";
  }
  if (ranks.empty() && !collectives_.idle()) {
    auto const collective = collectives_.awaited();
    ranks = collective.ranks;
    what = collective.what;
  }
  if (ranks.empty()) {
    return {me_, fmt::format("rank {} was at step {}", number(me_), number(round_.clock()))};
  }
  std::vector<std::uint32_t> numbers;
  for (Rank rank : ranks) numbers.push_back(number(rank));
  return {ranks.front(), fmt::format("rank {} awaited {} from {} {}", number(me_), what,
                                     numbers.size() == 1 ? "rank" : "ranks", fmt::join(numbers, ", "))};
}

void Engine::wait(std::function<bool()> const& done, double timeout_s) {
  bool const ended = turner_.wait([&] { return failed_.load() || done(); }, timeout_s);
  throw_if_failed();
  if (ended) return;
  {
    std::lock_guard turning(turning_);
    auto const [rank, text] = awaited();
    fail(std::make_exception_ptr(PeerError(
        rank, fmt::format("{}, and nothing came for {} s (it may hang, or have ended early): look at that "
                          "rank's output, or allow more time (StoreOptions::wait_timeout_s, cluster.wait_timeout_s)",
                          text, timeout_s))));
  }
  throw_if_failed();
}

void Engine::wait_run(std::function<void(Stream&)> const& task) {
  struct Result {
    std::exception_ptr error;
    std::atomic<bool> done = false;
  };
  auto const result = std::make_shared<Result>();
  post([this, result, &task] {
    try {
      task(stream_);
    } catch (...) {
      result->error = comm::only_errors(std::current_exception());
    }
    result->done = true;
  });
  wait([result] { return result->done.load(); }, kForever_s);
  if (result->error) std::rethrow_exception(result->error);
}

void Engine::announce(BatchPtr batch) {
  post([this, batch = std::move(batch)] { exchange_.announce(batch); });
}

void Engine::end_step(BatchPtr batch, std::uint32_t signal) {
  post([this, batch = std::move(batch), signal] { exchange_.step_ended(batch, signal); });
}

std::vector<std::string> Engine::wait_gather_patiently(std::string const& mine) { return gather(mine, kForever_s); }

std::vector<std::string> Engine::gather(std::string const& mine, double timeout_s, std::optional<Rank> root) {
  GPUPS_REQUIRE(mine.size() <= kGatherBytesMax,
                "{} bytes of a rank are to be gathered at once (the most is {}): gather them in parts", mine.size(),
                kGatherBytesMax);
  auto const request = std::make_shared<GatherRequest>();
  request->number = gathers_++;
  request->mine = mine;
  request->root = root;
  post([this, request] { requests_.begin(request); });
  wait([request] { return request->done.load(); }, timeout_s);
  return std::move(request->all);
}

void Engine::post_soon(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    posts_.push_back(std::move(task));
  }
  turner_.turn_soon();
}

void Engine::begin_rows(std::shared_ptr<RowRequest> const& request) {
  post_soon([this, request] { requests_.begin(request); });
}

void Engine::begin_collective(std::shared_ptr<comm::Collective> const& collective) {
  post_soon([this, collective] { collectives_.begin(collective); });
}

void Engine::wait_rows(RowRequest const& request) {
  wait([&request] { return request.done.load(); });
}

}  // namespace gpups::cache
