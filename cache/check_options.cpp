// SPDX-License-Identifier: Apache-2.0
#include "cache/check_options.hpp"

#include <cmath>

#include "cache/manifest.hpp"
#include "kernels/check.hpp"
#include "kernels/half.hpp"
#include "kernels/number_type.hpp"
#include "kernels/timeout.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kDimMax = 65536;
constexpr std::uint32_t kAdmitMax = 0x7FFFFFFF;
constexpr std::uint32_t kAgeMax = 0x7FFFFFFF;
constexpr std::size_t kCapacityRowsMax = std::size_t{1} << 30;
constexpr std::size_t kDictionaryMax = std::size_t{1} << 30;
constexpr std::size_t kRankRowsMax = (std::size_t{1} << 31) - 1;  // row numbers have 31 bits
constexpr std::size_t kNameBytesMax = 1024;
constexpr std::int64_t kStepsMax = std::int64_t{1} << 53;  // steps are counted exactly by a double

// Throws Error where a table's rows cannot travel in this way.
void check_compression(TableOptions const& table, RowCompression const& transfer, char const* which) {
  auto const& filter = transfer.filter;
  GPUPS_REQUIRE(transfer.codec <= RowCodec::kInt4,
                "table '{}' has a codec of type {} for its {} (no such type is known): set codec to an enumerator of "
                "RowCodec",
                table.name, static_cast<int>(transfer.codec), which);
  GPUPS_REQUIRE(transfer.top_k <= table.dim,
                "table '{}' sends the {} largest columns of its {} (its rows have {}): lower top_k, or set 0 to send "
                "all",
                table.name, transfer.top_k, which, table.dim);
  GPUPS_REQUIRE(filter.density >= 0 && filter.density <= 1,
                "table '{}' is to send a share of {} of its {} (shares are 0 to 1): correct filter.density", table.name,
                filter.density, which);
  GPUPS_REQUIRE(std::isfinite(filter.threshold_max) && filter.threshold_max >= 0,
                "table '{}' holds its {} back below a bound of {} (bounds are finite and not negative): correct "
                "filter.threshold_max",
                table.name, which, filter.threshold_max);
  GPUPS_REQUIRE(filter.age_max <= kAgeMax,
                "table '{}' holds its {} back for {} steps (the most is {}): lower filter.age_max", table.name, which,
                filter.age_max, kAgeMax);
  GPUPS_REQUIRE(transfer.capacity_rows >= 1 && transfer.capacity_rows <= kCapacityRowsMax,
                "table '{}' remembers what it holds back of {} rows of {} (1 to {} can be): correct capacity_rows",
                table.name, transfer.capacity_rows, which, kCapacityRowsMax);
}
// Whether initial values are in the range of their type; normal ones are less than 8 standard deviations.
bool can_begin(TableOptions const& options) {
  auto const& [kind, scale] = options.initializer;
  float const largest = kind == Initializer::Kind::kNormal ? 8 * scale : scale;
  bool fits = true;
  kernels::with_number(options.value_type,
                       [&]<class T>() { fits = std::isfinite(kernels::to_float(kernels::round_to<T>(largest))); });
  return fits;
}

// Throws Error for an enumerator that there is not. last: the last of its type.
template <class Kind>
void check_kind(TableOptions const& table, Kind kind, Kind last, char const* what) {
  GPUPS_REQUIRE(kind >= Kind{} && kind <= last,
                "table '{}' has {} of kind {} (no such kind is known): set kind to an enumerator of its type",
                table.name, what, static_cast<int>(kind));
}

void check_schedule(TableOptions const& table) {
  auto const& [kind, warmup_steps, total_steps, floor] = table.schedule;
  check_kind(table, kind, Schedule::Kind::kCosine, "a schedule");
  GPUPS_REQUIRE(floor >= 0 && floor <= 1,
                "the schedule of table '{}' ends at the share {} of its rate (shares are 0 to 1): correct "
                "schedule.min_factor",
                table.name, floor);
  for (std::int64_t const steps : {warmup_steps, total_steps}) {
    GPUPS_REQUIRE(steps >= 0 && steps <= kStepsMax,
                  "the schedule of table '{}' has a warm-up of {} steps and {} in all (steps are counted from 0 to "
                  "2^53): correct warmup_steps or total_steps",
                  table.name, warmup_steps, total_steps);
  }
  GPUPS_REQUIRE(
      kind == Schedule::Kind::kConstant || total_steps > warmup_steps,
      "the schedule of table '{}' ends at step {} after a warm-up of {} (its rate would be the floor from the "
      "start): set total_steps",
      table.name, total_steps, warmup_steps);
}

}  // namespace

void check_store(StoreOptions const& options) {
  bool const is_host = options.device == Device::host();
  GPUPS_REQUIRE(is_host || (options.device.kind == Device::Kind::kCuda && options.device.index >= 0),
                "a Store is made on device {} of kind {} (there is none): use Device::host() or Device::cuda(0)",
                options.device.index, static_cast<int>(options.device.kind));
  kernels::require_threads(options.threads, "StoreOptions::threads");
  kernels::require_timeout(options.wait_timeout_s, "StoreOptions::wait_timeout_s (cluster.wait_timeout_s)");
}

void check_table(TableOptions const& options, int ranks) {
  GPUPS_REQUIRE(!options.name.empty(), "a table has no name (its rows' initial values depend on it): set name");
  GPUPS_REQUIRE(
      options.name.size() <= kNameBytesMax && is_utf8(options.name),
      "a table has a name of {} bytes that is too long, or no UTF-8 (checkpoints have it in JSON): use at most "
      "{} bytes of text",
      options.name.size(), kNameBytesMax);
  GPUPS_REQUIRE(options.dim >= 1 && options.dim <= kDimMax, "table '{}' has dim {} (rows have 1 to {} values): set dim",
                options.name, options.dim, kDimMax);
  GPUPS_REQUIRE(options.grid_log2 >= -60 && options.grid_log2 <= 30,
                "table '{}' has grid_log2 {} (sums of 63 bits need it in -60 .. 30): use -30", options.name,
                options.grid_log2);
  GPUPS_REQUIRE(options.admission_count >= 1 && options.admission_count <= kAdmitMax,
                "table '{}' admits rows at occurrence {} (occurrences are counted from 1 to {}): set admission_count",
                options.name, options.admission_count, kAdmitMax);
  GPUPS_REQUIRE(options.value_type <= DataType::kBFloat16,
                "table '{}' has values of type {} (no such type is known): set value_type to an enumerator of DataType",
                options.name, static_cast<int>(options.value_type));
  check_compression(options, options.gradient_compression, "gradients");
  check_compression(options, options.refresh_compression, "refreshes");
  GPUPS_REQUIRE(options.refresh_compression.top_k == 0,
                "table '{}' sends the {} largest columns of its refreshes (that is for gradients): set top_k to 0",
                options.name, options.refresh_compression.top_k);
  GPUPS_REQUIRE(options.dictionary_keys <= kDictionaryMax,
                "table '{}' remembers {} keys (the most is {}): lower dictionary_keys", options.name,
                options.dictionary_keys, kDictionaryMax);
  GPUPS_REQUIRE(
      options.expected_rows / static_cast<std::size_t>(ranks) < kRankRowsMax,
      "table '{}' expects {} rows on {} ranks (a rank holds at most {}): lower expected_rows, which is a hint, "
      "or use more ranks",
      options.name, options.expected_rows, ranks, kRankRowsMax);
  auto const& o = options.optimizer;
  check_kind(options, o.kind, Optimizer::Kind::kFtrl, "an optimizer");
  check_kind(options, options.initializer.kind, Initializer::Kind::kNormal, "an initializer");
  for (float const value : {o.learning_rate, o.epsilon, o.initial_accumulator, o.l2, o.clip_norm, o.l1, o.beta}) {
    GPUPS_REQUIRE(std::isfinite(value) && value >= 0,
                  "table '{}' has an optimizer setting of {} (rates, epsilons and norms are finite and not "
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
  GPUPS_REQUIRE(options.initializer.kind == Initializer::Kind::kConstant || options.initializer.scale >= 0,
                "table '{}' begins with random values of scale {} (a range or a deviation is not negative): set "
                "initializer.scale",
                options.name, options.initializer.scale);
  bool const half = options.value_type == DataType::kHalf;
  GPUPS_REQUIRE(can_begin(options),
                "table '{}' begins with values of scale {} (its type ends at {}, so some would be infinite): lower the "
                "scale of initial values{}",
                options.name, options.initializer.scale, half ? "65,504" : "3.39e38",
                half ? ", or use kBFloat16 (\"bfloat16\" in configurations)" : "");
  check_schedule(options);
}

}  // namespace gpups::cache
