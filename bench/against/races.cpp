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
  };
  return kAll;
}

}  // namespace gpups::bench
