// SPDX-License-Identifier: Apache-2.0
#include "bench/against/races.hpp"

namespace gpups::bench {

std::span<RaceEntry const> races() {
  static constexpr RaceEntry kAll[] = {
      {"gather", gather_race},
  };
  return kAll;
}

}  // namespace gpups::bench
