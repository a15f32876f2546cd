// SPDX-License-Identifier: Apache-2.0
#include "bench/against/races.hpp"

namespace gpups::bench {

std::span<RaceEntry const> races() {
  static constexpr RaceEntry kAll[] = {
      {"exact_sums", exact_sums_race},
      {"gather", gather_race},
      {"unique_keys_sort", unique_keys_sort_race},
#ifdef GPUPS_HAS_ABSL
      {"unique_keys_absl", unique_keys_absl_race},
#endif
      {"find_gather_pooled", find_gather_pooled_race},
      {"find_gather_pooled_uniform", find_gather_pooled_uniform_race},
  };
  return kAll;
}

}  // namespace gpups::bench
