// SPDX-License-Identifier: Apache-2.0
#include "bench/against/races.hpp"

namespace gpups::bench {

std::span<RaceEntry const> races() {
  static constexpr RaceEntry kAll[] = {
#ifdef GPUPS_HAS_ABSL
      {"find_hits", find_hits_race},
      {"find_half_missing", find_half_missing_race},
      {"find_or_insert", find_or_insert_race},
      {"unique_keys_absl", unique_keys_absl_race},
#endif
      {"unique_keys_sort", unique_keys_sort_race},
      {"gather", gather_race},
      {"gather_bare", gather_bare_race},
      {"find_gather_pooled", find_gather_pooled_race},
      {"find_gather_pooled_uniform", find_gather_pooled_uniform_race},
      {"push", push_race},
      {"push_bare", push_bare_race},
      {"push_bags", push_bags_race},
      {"resolve_known", resolve_known_race},
      {"resolve_few_new", resolve_few_new_race},
      {"exact_sums", exact_sums_race},
      {"quantize_int8", quantize_int8_race},
      {"sum_streams", sum_streams_race},
      {"encode_1", encode_1_race},
      {"encode_10", encode_10_race},
      {"encode_30", encode_30_race},
      {"encode_60", encode_60_race},
      {"sum_2_streams_1", sum_2_streams_1_race},
      {"sum_2_streams_10", sum_2_streams_10_race},
      {"sum_2_streams_30", sum_2_streams_30_race},
      {"sum_2_streams_60", sum_2_streams_60_race},
      {"sum_4_streams_30", sum_4_streams_30_race},
      {"sum_4_streams_60", sum_4_streams_60_race},
      {"top_k", top_k_race},
      {"pack_sums", pack_sums_race},
      {"add_packed_sums", add_packed_sums_race},
  };
  return kAll;
}

}  // namespace gpups::bench
