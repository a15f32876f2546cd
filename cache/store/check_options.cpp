// SPDX-License-Identifier: Apache-2.0
#include "cache/store/checks.hpp"

#include <cmath>

#include "cache/files/manifest.hpp"
#include "cache/placement/policy.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/half.hpp"
#include "kernels/rows/number_type.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kDimMax = 65536;
constexpr std::uint32_t kAdmitMax = 0x7FFFFFFF;
constexpr std::uint32_t kAgeMax = 0x7FFFFFFF;
constexpr std::size_t kCapacityRowsMax = std::size_t{1} << 30;
constexpr std::size_t kDictionaryMax = std::size_t{1} << 30;
constexpr std::size_t kRankRowsMax = (std::size_t{1} << 31) - 1;  // row numbers have 31 bits
constexpr std::size_t kNameBytesMax = 1024;
constexpr std::int64_t kStalenessMax = 65536;
constexpr std::int64_t kStepsMax = std::int64_t{1} << 53;  // steps are counted exactly by a double

// Throws Error for invalid options of one direction. which: "gradients" or "refreshes", for messages.
void check_compression(TableOptions const& table, RowCompression const& compression, char const* which) {
  auto const& filter = compression.filter;
  GPUPS_REQUIRE(compression.codec <= RowCodec::kInt4,
                "table '{}' has the codec number {} for its {} (there is no such codec): set codec to an enumerator of "
                "RowCodec",
                table.name, static_cast<int>(compression.codec), which);
  GPUPS_REQUIRE(
      compression.top_k <= table.dim,
      "table '{}' has top_k {} for its {} (its rows have {} columns): lower top_k, or set 0 to send all columns",
      table.name, compression.top_k, which, table.dim);
  GPUPS_REQUIRE(filter.density >= 0 && filter.density <= 1,
                "table '{}' has filter.density {} for its {} (a density is a share of rows, 0 to 1): correct it",
                table.name, filter.density, which);
  GPUPS_REQUIRE(
      std::isfinite(filter.threshold_max) && filter.threshold_max >= 0,
      "table '{}' has filter.threshold_max {} for its {} (a threshold is finite and not negative): correct it",
      table.name, filter.threshold_max, which);
  GPUPS_REQUIRE(filter.age_max <= kAgeMax,
                "table '{}' has filter.age_max {} for its {} (the maximum is {} steps): lower it", table.name,
                filter.age_max, which, kAgeMax);
  GPUPS_REQUIRE(compression.capacity_rows >= 1 && compression.capacity_rows <= kCapacityRowsMax,
                "table '{}' has capacity_rows {} for its {} (the capacity is 1 to {} rows): correct it", table.name,
                compression.capacity_rows, which, kCapacityRowsMax);
}
// Returns true if all initial values are finite in the table's data type. Magnitudes of normal values are below 8
// standard deviations.
bool can_begin(TableOptions const& options) {
  auto const& [kind, scale] = options.initializer;
  float const largest = kind == Initializer::Kind::kNormal ? 8 * scale : scale;
  bool fits = true;
  kernels::with_number(options.value_type,
                       [&]<class T>() { fits = std::isfinite(kernels::to_float(kernels::round_to<T>(largest))); });
  return fits;
}

// Throws Error if `kind` is not an enumerator. last: the last enumerator of its type.
template <class Kind>
void check_kind(TableOptions const& table, Kind kind, Kind last, char const* what) {
  GPUPS_REQUIRE(kind >= Kind{} && kind <= last,
                "table '{}' has {} of kind {} (there is no such kind): set kind to an enumerator of its type",
                table.name, what, static_cast<int>(kind));
}

void check_schedule(TableOptions const& table) {
  auto const& [kind, warmup_steps, total_steps, floor] = table.schedule;
  check_kind(table, kind, Schedule::Kind::kCosine, "a schedule");
  GPUPS_REQUIRE(floor >= 0 && floor <= 1,
                "the schedule of table '{}' has min_factor {} (it is a factor on the learning rate, 0 to 1): correct "
                "schedule.min_factor",
                table.name, floor);
  for (std::int64_t const steps : {warmup_steps, total_steps}) {
    GPUPS_REQUIRE(steps >= 0 && steps <= kStepsMax,
                  "the schedule of table '{}' has {} warmup_steps and {} total_steps (numbers of steps are 0 to 2^53): "
                  "correct warmup_steps or total_steps",
                  table.name, warmup_steps, total_steps);
  }
  GPUPS_REQUIRE(
      kind == Schedule::Kind::kConstant || total_steps > warmup_steps,
      "the schedule of table '{}' has {} total_steps and {} warmup_steps (the learning rate would be at its minimum "
      "directly after the warm-up): set total_steps above warmup_steps",
      table.name, total_steps, warmup_steps);
}

}  // namespace

void check_store(StoreOptions const& options) {
  bool const is_host = options.device == Device::host();
  GPUPS_REQUIRE(is_host || (options.device.kind == Device::Kind::kCuda && options.device.index >= 0),
                "StoreOptions::device has index {} and kind {} (there is no such device): use Device::host() or "
                "Device::cuda(0)",
                options.device.index, static_cast<int>(options.device.kind));
  kernels::require_threads(options.threads, "StoreOptions::threads");
  GPUPS_REQUIRE(
      options.replica_fraction >= 0 && options.replica_fraction <= 1,
      "StoreOptions::replica_fraction is {} (it is a fraction of the rows of a rank): give 0 to 1, for example "
      "0.1",
      options.replica_fraction);
  GPUPS_REQUIRE(options.placement <= PlacementPolicy::kAuto,
                "StoreOptions::placement has the number {} (there is no such policy): use an enumerator of "
                "PlacementPolicy",
                static_cast<int>(options.placement));
  GPUPS_REQUIRE(options.placement_window >= 1 && options.placement_window <= cache::kPolicyWindow,
                "StoreOptions::placement_window is {} (it is a number of steps): give 1 to {}",
                options.placement_window, cache::kPolicyWindow);
  GPUPS_REQUIRE(
      options.placement_bytes_min >= -1,
      "StoreOptions::placement_bytes_min is {} (it is a number of bytes, or -1 for the usual one): give -1 or "
      "more",
      options.placement_bytes_min);
  GPUPS_REQUIRE(
      options.ranks_per_host >= 0,
      "StoreOptions::ranks_per_host is {} (it is a number of ranks, or 0 for those that the group knows): give "
      "0 or more",
      options.ranks_per_host);
  GPUPS_REQUIRE(options.staleness >= 0 && options.staleness <= kStalenessMax,
                "StoreOptions::staleness is {} (it is a number of steps): give 0 to {}", options.staleness,
                kStalenessMax);
  GPUPS_REQUIRE(
      options.staleness == 0 || options.replica_fraction > 0,
      "StoreOptions::staleness is {} and replica_fraction is 0 (no copies are kept that could be read): give a "
      "replica_fraction above 0, or staleness 0 (placement.replica_fraction, placement.staleness)",
      options.staleness);
  kernels::require_timeout(options.wait_timeout_s, "StoreOptions::wait_timeout_s (cluster.wait_timeout_s)");
}

void check_table(TableOptions const& options, int ranks) {
  GPUPS_REQUIRE(!options.name.empty(), "a table has no name (initial values and checkpoints need it): set name");
  GPUPS_REQUIRE(
      options.name.size() <= kNameBytesMax && is_utf8(options.name),
      "a table's name of {} bytes is too long or not UTF-8 (checkpoints store it in JSON): use at most {} bytes of "
      "UTF-8 text",
      options.name.size(), kNameBytesMax);
  GPUPS_REQUIRE(options.dim >= 1 && options.dim <= kDimMax, "table '{}' has dim {} (a row has 1 to {} values): set dim",
                options.name, options.dim, kDimMax);
  GPUPS_REQUIRE(options.grid_log2 >= -60 && options.grid_log2 <= 30,
                "table '{}' has grid_log2 {} (sums of 63 bits need -60 to 30): use -30", options.name,
                options.grid_log2);
  GPUPS_REQUIRE(options.admission_count >= 1 && options.admission_count <= kAdmitMax,
                "table '{}' has admission_count {} (occurrences are counted from 1 to {}): set admission_count",
                options.name, options.admission_count, kAdmitMax);
  GPUPS_REQUIRE(options.value_type <= DataType::kBFloat16,
                "table '{}' has the value_type number {} (there is no such type): set value_type to an enumerator of "
                "DataType",
                options.name, static_cast<int>(options.value_type));
  check_compression(options, options.gradient_compression, "gradients");
  check_compression(options, options.refresh_compression, "refreshes");
  GPUPS_REQUIRE(options.refresh_compression.top_k == 0,
                "table '{}' has top_k {} for its refreshes (only gradients can be sent in part): set "
                "refresh_compression.top_k to 0",
                options.name, options.refresh_compression.top_k);
  GPUPS_REQUIRE(options.dictionary_keys <= kDictionaryMax,
                "table '{}' has {} dictionary_keys (the maximum is {}): lower dictionary_keys", options.name,
                options.dictionary_keys, kDictionaryMax);
  GPUPS_REQUIRE(
      options.expected_rows / static_cast<std::size_t>(ranks) < kRankRowsMax,
      "table '{}' has {} expected_rows on {} ranks (a rank holds at most {} rows): lower expected_rows, which only "
      "reserves memory, or use more ranks",
      options.name, options.expected_rows, ranks, kRankRowsMax);
  auto const& o = options.optimizer;
  check_kind(options, o.kind, Optimizer::Kind::kFtrl, "an optimizer");
  check_kind(options, options.initializer.kind, Initializer::Kind::kNormal, "an initializer");
  for (float const value : {o.learning_rate, o.epsilon, o.initial_accumulator, o.l2, o.clip_norm, o.l1, o.beta}) {
    GPUPS_REQUIRE(std::isfinite(value) && value >= 0,
                  "table '{}' has {} as learning_rate, epsilon, initial_accumulator, l2, clip_norm, l1 or beta of its "
                  "optimizer (these are finite and not negative): correct it",
                  options.name, value);
  }
  for (float const beta : {o.beta1, o.beta2}) {
    GPUPS_REQUIRE(beta >= 0 && beta < 1,
                  "table '{}' has {} as beta1 or beta2 of its optimizer (with 1 or more the moments would ignore new "
                  "gradients): use 0 or more and less than 1",
                  options.name, beta);
  }
  GPUPS_REQUIRE(std::isfinite(options.initializer.scale),
                "table '{}' has initializer.scale {} (initial values must be finite): set initializer.scale",
                options.name, options.initializer.scale);
  GPUPS_REQUIRE(options.initializer.kind == Initializer::Kind::kConstant || options.initializer.scale >= 0,
                "table '{}' has initializer.scale {} (a range or a standard deviation is not negative): set "
                "initializer.scale",
                options.name, options.initializer.scale);
  bool const half = options.value_type == DataType::kHalf;
  GPUPS_REQUIRE(
      can_begin(options),
      "table '{}' has initializer.scale {} (the largest number of its value_type is {}, so some initial values "
      "would be infinite): lower initializer.scale{}",
      options.name, options.initializer.scale, half ? "65,504" : "3.39e38",
      half ? ", or use kBFloat16 (\"bfloat16\" in configurations)" : "");
  check_schedule(options);
}

}  // namespace gpups::cache
