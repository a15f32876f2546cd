// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/policy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "cache/wire/row_coder.hpp"
#include "gpups/error.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups {

char const* name_of(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kStatic:
      return "static";
    case PlacementPolicy::kRelocate:
      return "relocate";
    case PlacementPolicy::kAdaptive:
      return "adaptive";
    case PlacementPolicy::kRandom:
      return "random";
    case PlacementPolicy::kAuto:
      return "auto";
  }
  return "unknown";
}

PlacementPolicy placement_policy(std::string_view name) {
  std::string names;
  for (auto const policy : kPlacementPolicies) {
    if (name == name_of(policy)) return policy;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(policy));
  }
  throw Error(fmt::format("there is no placement policy '{}' (the policies are {}): use one of them", name, names));
}

char const* name_of(PlacementReason reason) {
  switch (reason) {
    case PlacementReason::kHome:
      return "home";
    case PlacementReason::kLocalized:
      return "localized";
    case PlacementReason::kPolicy:
      return "policy";
  }
  return "unknown";
}

}  // namespace gpups

namespace gpups::cache {

namespace {

// Of a key in a dictionary, which takes 1 to 9 bytes, and of a rank.
constexpr std::int64_t kForwardBytes = 3, kRouteBytes = 1;

// Returns the bytes of a row that is sent with these settings, on average. exact: those of a number without a codec.
double sent_bytes(RowCompression const& sent, std::size_t dim, std::size_t exact) {
  constexpr std::size_t kBits[] = {0, 16, 16, 8, 4};  // by RowCodec
  std::size_t const columns = sent.top_k > 0 ? sent.top_k : dim;
  std::size_t const bits = sent.codec == RowCodec::kLossless ? 8 * exact : kBits[static_cast<int>(sent.codec)];
  bool const has_scale = sent.codec == RowCodec::kInt8 || sent.codec == RowCodec::kInt4;
  double bytes = static_cast<double>(columns * bits + (sent.top_k > 0 ? dim : 0)) / 8;
  if (has_scale) bytes += sizeof(float) * (columns < kShortRow ? static_cast<double>(columns) / 64 : 1);
  // A filter sends the requested fraction of the rows, but none less often than at its age.
  auto const& filter = sent.filter;
  return filter.age_max == 0 ? bytes : bytes * std::clamp<double>(filter.density, 1.0 / filter.age_max, 1);
}

}  // namespace

RowBytes row_bytes(TableOptions const& table, bool has_plain_keys) {
  std::size_t const number = kernels::bytes_of_number(table.value_type);
  std::size_t const state = kernels::state_columns(table.optimizer, table.dim) * sizeof(float);
  std::size_t const counters = kernels::kLifecycleWords * sizeof(std::uint32_t);
  return {.read = std::llround(sent_bytes(table.refresh_compression, table.dim, number)),
          .update = std::llround(sent_bytes(table.gradient_compression, table.dim, sizeof(float))),
          .move = static_cast<std::int64_t>(table.dim * number + state + counters),
          .forward = has_plain_keys ? std::int64_t{sizeof(Key)} : kForwardBytes,
          .route = kRouteBytes};
}

PlacementPolicy PlacementRules::policy_of(TableOptions const& table) const {
  auto const bytes = bytes_of(table);
  bool const is_narrow = policy == PlacementPolicy::kAdaptive && bytes.read + bytes.update < bytes_min;
  return is_narrow ? PlacementPolicy::kStatic : policy;
}

}  // namespace gpups::cache
