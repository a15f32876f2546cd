// SPDX-License-Identifier: Apache-2.0
// The store itself and its tables.
#include "gpups/store.hpp"

#include <algorithm>
#include <cmath>

#include "cache/store_impl.hpp"
#include "kernels/arena.hpp"
#include "kernels/check.hpp"
#include "kernels/half.hpp"
#include "kernels/number_type.hpp"

namespace gpups {
namespace {

constexpr std::size_t kDimMax = 65536;
constexpr std::uint32_t kAdmitMax = 0x7FFFFFFF;
constexpr std::uint32_t kAgeMax = 0x7FFFFFFF;
constexpr std::size_t kHeldRowsMax = std::size_t{1} << 30;

// Throws Error where a table's rows cannot travel in this way.
void check_transfer(TableOptions const& table, RowTransfer const& transfer, char const* which) {
  auto const& filter = transfer.filter;
  GPUPS_REQUIRE(transfer.codec <= RowCodec::kInt4,
                "table '{}' has a codec of type {} for its {} (no such type is known): set codec to an enumerator of "
                "RowCodec",
                table.name, static_cast<int>(transfer.codec), which);
  GPUPS_REQUIRE(transfer.top_k <= table.dim,
                "table '{}' sends the {} largest columns of its {} (its rows have {}): lower top_k, or set 0 to send "
                "all",
                table.name, transfer.top_k, which, table.dim);
  GPUPS_REQUIRE(filter.share >= 0 && filter.share <= 1,
                "table '{}' is to send a share of {} of its {} (shares are 0 to 1): correct filter.share", table.name,
                filter.share, which);
  GPUPS_REQUIRE(std::isfinite(filter.bound) && filter.bound >= 0,
                "table '{}' holds its {} back below a bound of {} (bounds are finite and not negative): correct "
                "filter.bound",
                table.name, which, filter.bound);
  GPUPS_REQUIRE(filter.age_max <= kAgeMax,
                "table '{}' holds its {} back for {} steps (the most is {}): lower filter.age_max", table.name, which,
                filter.age_max, kAgeMax);
  GPUPS_REQUIRE(transfer.rows_max >= 1 && transfer.rows_max <= kHeldRowsMax,
                "table '{}' remembers what it holds back of {} rows of {} (1 to {} can be): correct rows_max",
                table.name, transfer.rows_max, which, kHeldRowsMax);
}
constexpr std::size_t kDictionaryMax = std::size_t{1} << 30;

// Whether initial values are in the range of their type; normal ones are less than 8 standard deviations.
bool can_begin(TableOptions const& options) {
  auto const& [kind, scale] = options.initializer;
  float const largest = kind == Initializer::Kind::kNormal ? 8 * scale : scale;
  bool fits = true;
  if (options.values == NumberType::kFloat) return fits;
  kernels::with_number(options.values,
                       [&]<class T>() { fits = std::isfinite(kernels::to_float(kernels::round_to<T>(largest))); });
  return fits;
}

int own_threads(Group const& group, int asked) {
  if (asked > 0) return asked;
  int const all = kernels::Arena(0).threads();
  return std::max(1, all / group.impl().cores_shared_by);
}

// What a simulation takes links for.
constexpr comm::LinkModel kSimulatedLinks{
    .round_s = 2e-5, .byte_s = 1e-9, .add_s = 5e-10, .entry_s = 5e-9, .code_s = 2e-9};

comm::Selector make_selector(Group const& group) {
  if (group.impl().simulated) return comm::Selector(comm::LinkCache({}), kSimulatedLinks);
  return comm::Selector(comm::LinkCache(comm::user_cache_folder()), std::nullopt);
}

}  // namespace

Store::Impl::Impl(Group const& group, StoreOptions const& options)
    : group_(group),
      options_(options),
      main_stream_(options.device, own_threads(group, options.threads)),
      selector_(make_selector(group)),
      engine_(group, main_stream_.sibling(), options.wait_timeout_s) {
  group_.impl().reducer = this;
}

Store::Impl::~Impl() { group_.impl().reducer = nullptr; }

cache::Engine& Store::Impl::engine() {
  std::lock_guard lock(mutex_);
  if (!engine_.started()) engine_.start(clock_, options_.seed);
  return engine_;
}

cache::TableShard& Store::Impl::shard(TableId table) {
  GPUPS_REQUIRE(number(table) < engine_.tables().size(), "table {} is not there (the store has {}): add it first",
                number(table), engine_.tables().size());
  return *engine_.tables()[number(table)];
}

Store::Store(Group group, StoreOptions const& options) {
  auto const connected = group.impl().connected;
  GPUPS_REQUIRE(
      !connected || *connected == options.device,
      "a Store on {} is made on a membership whose wait_connect_devices() was called for {} (the ranks would not "
      "agree on how data go): call both for the same device",
      to_string(options.device), to_string(*connected));
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
                "table '{}' is added to a store in use (all ranks must know all tables from "
                "the start): add tables first",
                options.name);
  GPUPS_REQUIRE(!options.name.empty(), "a table has no name (its rows' initial values depend on it): set name");
  GPUPS_REQUIRE(options.dim >= 1 && options.dim <= kDimMax, "table '{}' has dim {} (rows have 1 to {} values): set dim",
                options.name, options.dim, kDimMax);
  GPUPS_REQUIRE(options.grid_log2 >= -60 && options.grid_log2 <= 30,
                "table '{}' has grid_log2 {} (sums of 63 bits need it in -60 .. 30): use -30", options.name,
                options.grid_log2);
  GPUPS_REQUIRE(options.admit_at >= 1 && options.admit_at <= kAdmitMax,
                "table '{}' admits rows at sighting {} (sightings are counted from 1 to {}): set admit_at",
                options.name, options.admit_at, kAdmitMax);
  GPUPS_REQUIRE(options.values <= NumberType::kBFloat16,
                "table '{}' has values of type {} (no such type is known): set values to an enumerator of NumberType",
                options.name, static_cast<int>(options.values));
  check_transfer(options, options.gradients, "gradients");
  check_transfer(options, options.refreshes, "refreshes");
  GPUPS_REQUIRE(options.refreshes.top_k == 0,
                "table '{}' sends the {} largest columns of its refreshes (that is for gradients): set top_k to 0",
                options.name, options.refreshes.top_k);
  GPUPS_REQUIRE(options.dictionary_keys <= kDictionaryMax,
                "table '{}' remembers {} keys (the most is {}): lower dictionary_keys", options.name,
                options.dictionary_keys, kDictionaryMax);
  auto const& o = options.optimizer;
  for (float const value :
       {o.learning_rate, o.epsilon, o.initial_accumulator, o.l2, o.clip_norm, o.l1, o.beta, options.schedule.floor}) {
    GPUPS_REQUIRE(std::isfinite(value) && value >= 0,
                  "table '{}' has an optimizer or schedule setting of {} (rates, epsilons and norms are finite and not "
                  "negative): correct it",
                  options.name, value);
  }
  for (float const beta : {o.beta1, o.beta2}) {
    GPUPS_REQUIRE(beta >= 0 && beta < 1,
                  "table '{}' has an optimizer whose moments keep a share of {} (below 1, or they would never learn): "
                  "correct beta1 or beta2",
                  options.name, beta);
  }
  GPUPS_REQUIRE(std::isfinite(options.initializer.scale),
                "table '{}' begins with values of scale {} (they must be finite): set initializer.scale", options.name,
                options.initializer.scale);
  bool const half = options.values == NumberType::kHalf;
  GPUPS_REQUIRE(can_begin(options),
                "table '{}' begins with values of scale {} (its type ends at {}, so some would be infinite): lower the "
                "scale of initial values{}",
                options.name, options.initializer.scale, half ? "65,504" : "3.39e38",
                half ? ", or use kBFloat16 (\"bfloat16\" in configurations)" : "");
  GPUPS_REQUIRE(
      options.schedule.kind == Schedule::Kind::kConstant ||
          options.schedule.total_steps > options.schedule.warmup_steps,
      "the schedule of table '{}' ends at step {} after a warm-up of {} (its rate would be the floor from the "
      "start): set total_steps",
      options.name, options.schedule.total_steps, options.schedule.warmup_steps);
  for (auto const& table : tables) {
    GPUPS_REQUIRE(table->options().name != options.name,
                  "two tables are named '{}' (checkpoints tell them apart by "
                  "name): rename one",
                  options.name);
  }
  auto const share = options.expected_rows / static_cast<std::size_t>(ranks()) + 1;
  tables.push_back(std::make_unique<cache::TableShard>(options, impl_->options_.seed, share));
  return TableId{static_cast<std::uint32_t>(tables.size() - 1)};
}

TableOptions const& Store::table(TableId table) const { return impl_->shard(table).options(); }

std::vector<MemoryLine> Store::memory_plan() const {
  std::vector<MemoryLine> plan;
  for (auto const& table : impl_->engine_.tables()) {
    auto const rows = table->options().expected_rows / static_cast<std::size_t>(ranks()) + 1;
    for (auto& line : cache::TableShard::memory_plan(table->options(), rows, ranks())) plan.push_back(std::move(line));
  }
  return plan;
}

Stats Store::stats() const {
  Stats stats;
  {
    std::lock_guard lock(impl_->mutex_);
    stats.entries = impl_->entries_;
    stats.distinct_keys = impl_->distinct_keys_;
    stats.remote_keys = impl_->remote_keys_;
    stats.wait_seconds = impl_->wait_seconds_;
  }
  impl_->engine_.write_stats(stats);
  return stats;
}

}  // namespace gpups
