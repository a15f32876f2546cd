// SPDX-License-Identifier: Apache-2.0
// Store: construction, tables, memory plan and counters.
#include "gpups/store.hpp"

#include <algorithm>

#include "cache/store/checks.hpp"
#include "cache/store/store_impl.hpp"
#include "comm/group/start_collective.hpp"
#include "gpups/stats.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/stream_impl.hpp"

namespace gpups {

Store::Impl::Impl(Group const& group, StoreOptions const& options)
    : group_(group),
      options_(options),
      main_stream_(options.device, options.threads > 0 ? options.threads : comm::share_of_cores(group.impl())),
      engine_(group, main_stream_.sibling(), options.wait_timeout_s) {
  auto& device = group_.impl().collective_device;
  device.set_by_store(options.device);
  device.stream() = main_stream_.sibling();
}

cache::StoreSchema Store::Impl::schema() const {
  return {.seed = options_.seed,
          .policy = options_.placement,
          .staleness = options_.staleness,
          .placement_window = options_.placement_window,
          .placement_bytes_min = options_.placement_bytes_min,
          .ranks_per_host = options_.ranks_per_host};
}

bool Store::Impl::rows_move(TableId table) {
  auto const& options = shard(table).options();
  return engine_.ranks() > 1 && engine_.rules_of(schema()).policy_of(options) != PlacementPolicy::kStatic;
}

cache::Engine& Store::Impl::engine() {
  std::lock_guard lock(mutex_);
  if (!engine_.started()) {
    engine_.start(clock_, schema(), options_.key_format);
  }
  return engine_;
}

cache::TableShard& Store::Impl::shard(TableId table) {
  GPUPS_REQUIRE(number(table) < engine_.tables().size(),
                "table {} does not exist (the store has {} tables): add it first", number(table),
                engine_.tables().size());
  return *engine_.tables()[number(table)];
}

Store::Store(Group group, StoreOptions const& options) {
  cache::check_store(options);
  group.impl().collective_device.check_store(options.device);
  impl_.reset(new Impl(group, options));
}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;

Rank Store::rank() const { return impl_->engine_.rank(); }
int Store::ranks() const { return impl_->engine_.ranks(); }
StoreOptions const& Store::options() const { return impl_->options_; }
Stream Store::make_stream() const { return impl_->main_stream_.sibling(); }
Clock Store::clock() const { return impl_->clock_; }

TableId Store::add_table(TableOptions const& options) {
  auto& tables = impl_->engine_.tables();
  GPUPS_REQUIRE(!impl_->engine_.started(),
                "table '{}' is added to a store in use (all ranks must have all tables before the first step): add "
                "tables before any other call",
                options.name);
  cache::check_table(options, ranks());
  for (auto const& table : tables) {
    GPUPS_REQUIRE(table->options().name != options.name,
                  "two tables are named '{}' (names must be unique in a store): rename one", options.name);
  }
  auto const share = options.expected_rows / static_cast<std::size_t>(ranks()) + 1;
  tables.push_back(std::make_unique<cache::TableShard>(options, impl_->options_.seed, share,
                                                       ranks() > 1 ? impl_->options_.replica_fraction : 0.0));
  return TableId{static_cast<std::uint32_t>(tables.size() - 1)};
}

TableOptions const& Store::table(TableId table) const { return impl_->shard(table).options(); }

std::vector<int> Store::ranks_per_host() const {
  auto const hosts = impl_->engine_.rules_of(impl_->schema()).hosts;
  if (hosts.empty()) return {ranks()};
  std::vector<int> counts(hosts.back() + 1, 0);
  for (auto const host : hosts) ++counts[host];
  return counts;
}

bool Store::rows_move(TableId table) const { return impl_->rows_move(table); }

std::vector<MemoryPlanLine> Store::memory_plan() const {
  std::vector<MemoryPlanLine> plan;
  std::size_t dictionaries = 0;  // ranks to which keys travel by a dictionary, and probably from which
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks()); ++q) {
    bool const is_other = Rank{q} != rank();
    if (is_other && !impl_->engine_.sends_plain_keys(Rank{q}, impl_->options_.key_format)) ++dictionaries;
  }
  for (std::uint32_t t = 0; t < impl_->engine_.tables().size(); ++t) {
    auto const& table = impl_->engine_.tables()[t];
    auto const rows = table->options().expected_rows / static_cast<std::size_t>(ranks()) + 1;
    auto const& options = table->options();
    bool const rows_move = impl_->rows_move(TableId{t});
    bool const leased = ranks() > 1 && impl_->options_.staleness > 0;
    std::size_t const leases = leased ? table->pin_budget() : 0;
    for (auto& line :
         cache::memory_plan(options, rows, table->replica_budget(), leases, ranks(), dictionaries, rows_move)) {
      plan.push_back(std::move(line));
    }
  }
  auto const others = static_cast<std::uint64_t>(ranks() - 1);
  if (others > 0) plan.push_back({"other ranks, on the host", others * cache::Engine::kBytesOfPeer});
  return plan;
}

Stats Store::stats() const {
  Stats stats;
  {
    std::lock_guard lock(impl_->mutex_);
    stats.entries = impl_->entries_;
    stats.distinct_keys = impl_->distinct_keys_;
    stats.wait_seconds = impl_->wait_seconds_;
  }
  impl_->engine_.write_stats(stats);
  auto const& counters = *impl_->main_stream_.impl().counters;
  stats.launches = counters.launches.load(std::memory_order_relaxed);
  stats.stream_waits = counters.waits.load(std::memory_order_relaxed);
  stats.host_copies = counters.host_copies.load(std::memory_order_relaxed);
  stats.host_copied_bytes = counters.host_bytes.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace gpups

namespace gpups {

TrafficByKind& TrafficByKind::operator+=(TrafficByKind const& other) {
  for (auto const kind :
       {&TrafficByKind::gradients, &TrafficByKind::refreshes, &TrafficByKind::intents, &TrafficByKind::late_fetches,
        &TrafficByKind::moves, &TrafficByKind::lookups, &TrafficByKind::allreduces, &TrafficByKind::control}) {
    this->*kind += other.*kind;
  }
  return *this;
}

Traffic& Traffic::operator+=(Traffic const& other) {
  TrafficByKind::operator+=(other);
  messages += other.messages;
  return *this;
}

double Stats::compression_ratio() const {
  std::uint64_t const bytes = sent.bytes();
  return bytes == 0 ? 1 : static_cast<double>(bytes + saved_bytes.total()) / static_cast<double>(bytes);
}

}  // namespace gpups
