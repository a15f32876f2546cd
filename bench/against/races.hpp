// SPDX-License-Identifier: Apache-2.0
// The races, each in the file of its name.
#pragma once

#include "bench/against/race.hpp"

namespace gpups::bench {

Race exact_sums_race(Stream& stream);
Race gather_race(Stream& stream);
Race unique_keys_sort_race(Stream& stream);
Race unique_keys_absl_race(Stream& stream);
Race find_gather_pooled_race(Stream& stream);
Race find_gather_pooled_uniform_race(Stream& stream);

}  // namespace gpups::bench
