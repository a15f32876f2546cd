// SPDX-License-Identifier: Apache-2.0
// The races; each is implemented in the file that is named after it.
#pragma once

#include "bench/against/race.hpp"

namespace gpups::bench {

// Comparisons with absl::flat_hash_map, if it is installed.
Race find_hits_race(Stream& stream);
Race find_half_missing_race(Stream& stream);
Race find_or_insert_race(Stream& stream);
Race unique_keys_absl_race(Stream& stream);

Race unique_keys_sort_race(Stream& stream);
Race gather_race(Stream& stream);
Race gather_bare_race(Stream& stream);
Race find_gather_pooled_race(Stream& stream);
Race find_gather_pooled_uniform_race(Stream& stream);
Race push_race(Stream& stream);
Race push_bare_race(Stream& stream);
Race push_bags_race(Stream& stream);
Race resolve_known_race(Stream& stream);
Race resolve_few_new_race(Stream& stream);
Race exact_sums_race(Stream& stream);
Race quantize_int8_race(Stream& stream);
Race sum_streams_race(Stream& stream);
Race encode_1_race(Stream& stream);
Race encode_10_race(Stream& stream);
Race encode_30_race(Stream& stream);
Race encode_60_race(Stream& stream);
Race sum_2_streams_1_race(Stream& stream);
Race sum_2_streams_10_race(Stream& stream);
Race sum_2_streams_30_race(Stream& stream);
Race sum_2_streams_60_race(Stream& stream);
Race sum_4_streams_30_race(Stream& stream);
Race sum_4_streams_60_race(Stream& stream);
Race top_k_race(Stream& stream);
Race pack_sums_race(Stream& stream);
Race add_packed_sums_race(Stream& stream);

}  // namespace gpups::bench
