// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/policy.hpp"

#include <fmt/core.h>

#include <string>

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

RowBytes row_bytes(TableOptions const& table) {
  auto const value = static_cast<std::int64_t>(table.dim * kernels::bytes_of_number(table.value_type));
  auto const state = static_cast<std::int64_t>(kernels::state_columns(table.optimizer, table.dim) * sizeof(float));
  return {.read = value,
          .update = static_cast<std::int64_t>(table.dim * sizeof(float)),
          .move = value + state + static_cast<std::int64_t>(kernels::kLifecycleWords * sizeof(std::uint32_t))};
}

}  // namespace gpups::cache
