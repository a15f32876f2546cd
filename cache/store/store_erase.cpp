// SPDX-License-Identifier: Apache-2.0
// Store::erase() and Store::expire().
#include <cstring>
#include <set>

#include "cache/protocol/requests/collective_call.hpp"
#include "cache/protocol/requests/row_request.hpp"
#include "cache/store/store_impl.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups {
namespace {

constexpr std::int64_t kRowAgeMax = 0xFFFFFFFF;  // rows store the low 32 bits of their step

// Returns the sum of the counts of all ranks.
std::uint64_t sum_of(std::vector<std::string> const& counts) {
  std::uint64_t sum = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    sum += cache::parse_result(rank, [&] {
      comm::Reader reader(counts[rank]);
      auto const count = reader.get<std::uint64_t>();
      reader.end();
      return count;
    });
  }
  return sum;
}

// Drops the residuals and mirrors of the rows that any rank has erased. Collective.
void wait_drop(cache::Engine& engine, Stream& stream, TableId table, View<Key const> keys) {
  auto const mine = to_host(stream, keys);
  std::string const bytes(reinterpret_cast<char const*>(mine.data()), mine.size() * sizeof(Key));
  std::set<Key> all;
  auto const of_ranks = engine.wait_allgather(bytes);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank].size() % sizeof(Key) != 0) cache::throw_invalid_result(rank, "a list of keys of a wrong size");
    for (std::size_t at = 0; at < of_ranks[rank].size(); at += sizeof(Key)) {
      Key key;
      std::memcpy(&key, of_ranks[rank].data() + at, sizeof key);
      all.insert(key);
    }
  }
  std::vector<Key> const distinct(all.begin(), all.end());
  engine.wait_invoke([&](Stream& own) { engine.executor().wait_drop(table, to_device(own, distinct)); });
}

// Returns a request that tells homes which of their rows ended here.
std::shared_ptr<cache::RowRequest> returned_rows(Stream& stream, cache::TableShard const& shard, TableId table, Rank me,
                                                 int ranks) {
  auto away = shard.wait_unused_keys(stream);
  std::erase_if(away, [=](Key key) { return kernels::home_of(key, static_cast<std::uint32_t>(ranks)) == number(me); });
  Array<std::uint32_t> positions;
  return cache::make_request(stream, cache::RowRequest::Kind::kReturn, table, to_device(stream, away), shard.dim(), 0,
                             ranks, positions);
}

}  // namespace

std::shared_ptr<cache::RowRequest> Store::Impl::wait_request(std::shared_ptr<cache::RowRequest> request) {
  engine_.begin_rows(request);
  engine_.wait_rows(*request);
  return request;
}

Store::Impl::ChangeOfRows::~ChangeOfRows() {
  std::lock_guard lock(store_.mutex_);
  store_.changing_rows_ = false;
  store_.engine_.allow_change({});
}

void Store::Impl::ChangeOfRows::forbid_batches() {
  std::lock_guard lock(store_.mutex_);
  GPUPS_REQUIRE(store_.prepared_.empty(),
                "erase(), expire() or localize() was called while a batch is prepared for step {} (its rows could "
                "be erased or move): call it when all prepared batches have been pushed and their steps have ended",
                number(*store_.prepared_.begin()));
  store_.changing_rows_ = true;
}

void Store::Impl::drop_replicas(Stream& stream) {
  engine_.executor().leased().clear();
  for (auto const& table : engine_.tables()) table->wait_drop_replicas(stream, engine_.complete() + options_.staleness);
}

void Store::Impl::free_unused_rows(Stream& stream) {
  for (auto const& table : engine_.tables()) table->wait_reclaim(stream);
}

std::uint64_t Store::Impl::wait_remove_rows(std::function<void()> const& check,
                                            std::function<std::uint64_t()> const& change) {
  using cache::Timeout;
  ChangeOfRows change_of_rows(*this);
  change_of_rows.allow(cache::RowRequest::Kind::kErase);
  cache::wait_collective_call(engine_, Timeout::kDefault, [&] {
    change_of_rows.forbid_batches();
    check();
    return std::string();
  });
  std::uint64_t mine = 0;
  cache::wait_collective_call(engine_, Timeout::kDefault, [&] {
    engine_.wait_invoke([&](Stream& own) { drop_replicas(own); });
    mine = change();
    return std::string();
  });
  // No rank can prepare a batch before all ranks have reached this call, so rows that are only reserved are unused.
  return sum_of(cache::wait_collective_call(engine_, Timeout::kNone, [&] {
    engine_.wait_invoke([&](Stream& own) { free_unused_rows(own); });
    comm::Writer writer;
    writer.put<std::uint64_t>(mine);
    return writer.take();
  }));
}

bool Store::Impl::wait_may_have_residuals(TableId table) {
  bool restored = false;
  engine_.wait_invoke([&](Stream&) { restored = engine_.executor().has_restored_residuals(table); });
  return restored || options_.staleness > 0 || shard(table).options().gradient_compression.enabled();
}

void Store::Impl::wait_drop_residuals_without_rows(TableId table) {
  constexpr std::size_t kKeysAtOnce = 16384;
  std::vector<Key> keys;
  engine_.wait_invoke([&](Stream&) { keys = engine_.executor().wait_residual_keys(table); });
  for (std::size_t first = 0; first < keys.size(); first += kKeysAtOnce) {
    std::vector<Key> const some(keys.begin() + static_cast<std::ptrdiff_t>(first),
                                keys.begin() + static_cast<std::ptrdiff_t>(std::min(first + kKeysAtOnce, keys.size())));
    std::shared_ptr<cache::RowRequest> request;
    engine_.wait_invoke([&](Stream& own) {
      Array<std::uint32_t> positions;
      request = cache::make_request(own, cache::RowRequest::Kind::kLookup, table, to_device(own, some),
                                    shard(table).dim(), 0, group_.size(), positions);
    });
    wait_request(request);
    engine_.wait_invoke([&](Stream& own) {
      auto const asked = to_host(own, request->all_keys());
      auto const found = to_host(own, View<std::uint8_t const>(request->found));
      std::vector<Key> dropped;
      for (std::size_t i = 0; i < asked.size(); ++i) {
        if (found[i] == 0) dropped.push_back(asked[i]);
      }
      if (!dropped.empty()) engine_.executor().wait_drop_residuals(table, to_device(own, dropped));
    });
  }
}

void Store::erase(Stream& stream, TableId table, View<Key const> keys) {
  impl_->require_between_steps("erase");
  auto& engine = impl_->engine();
  cache::Engine::CollectiveCall const call(engine, impl_->call_on(table, "erase"));
  wait_applied();
  std::shared_ptr<cache::RowRequest> request;
  auto const check = [&] {
    auto const& shard = impl_->shard(table);
    impl_->require_stream(stream, "erase");
    kernels::MemoryScope const scope(stream);
    Array<std::uint32_t> positions;
    request =
        cache::make_request(stream, cache::RowRequest::Kind::kErase, table, keys, shard.dim(), 0, ranks(), positions);
  };
  impl_->wait_remove_rows(check, [&] {
    impl_->wait_request(request);
    bool const has_mirrors = impl_->shard(table).options().refresh_compression.enabled();
    if (impl_->wait_may_have_residuals(table) || has_mirrors) wait_drop(engine, stream, table, keys);
    return 0;
  });
}

std::size_t Store::expire(TableId table, std::int64_t age) {
  impl_->require_between_steps("expire");
  auto& engine = impl_->engine();
  cache::Engine::CollectiveCall const call(engine, impl_->call_on(table, "expire", fmt::format("age {}", age)));
  wait_applied();
  auto const check = [&] {
    GPUPS_REQUIRE(age >= 1 && age <= kRowAgeMax,
                  "expire() was called with the age {} (an age is 1 to {} steps): give an age in this range", age,
                  kRowAgeMax);
    GPUPS_REQUIRE(age > impl_->options_.staleness,
                  "expire() was called with the age {} and the staleness {} (gradients of rows in use may wait for as "
                  "many steps): give an age above the staleness",
                  age, impl_->options_.staleness);
    (void)impl_->shard(table);  // throws if there is none
  };
  auto const expired = impl_->wait_remove_rows(check, [&] {
    std::uint64_t rows = 0;
    std::shared_ptr<cache::RowRequest> ended;
    engine.wait_invoke([&](Stream& own) {
      auto& shard = impl_->shard(table);
      rows = shard.wait_expire(own, clock(), static_cast<std::uint32_t>(age));
      if (engine.placement().any_moved) ended = returned_rows(own, shard, table, rank(), ranks());
    });
    if (ended != nullptr) impl_->wait_request(ended);
    return rows;
  });
  // Only the owners know which rows have expired.
  if (impl_->wait_may_have_residuals(table)) impl_->wait_drop_residuals_without_rows(table);
  return expired;
}

}  // namespace gpups
