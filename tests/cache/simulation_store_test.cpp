// SPDX-License-Identifier: Apache-2.0
// The store over a simulated network that delays, reorders and stalls. For every seed, no update is lost or applied
// twice, every read has the values of its step, every allreduce is correct, and the tables end with the bits of one
// rank.
//
// GPUPS_SIM_SEEDS sets the number of seeds, GPUPS_SIM_FIRST the first seed. A failure names its seed.
#include <gtest/gtest.h>

#include <string>

#include "tests/cache/cluster.hpp"
#include "tests/support/environment.hpp"

namespace gpups::test::simulation_store_test {
namespace {

Workload workload_of(std::uint64_t seed) {
  return {.steps = 6 + static_cast<int>(seed % 7),
          .seed = seed,
          .keys = 2 + seed * 7 % 90,
          .lookahead = static_cast<int>(seed / 4 % 6),
          .admission_count = seed % 3 == 0 ? 1 : 1 + static_cast<std::uint32_t>(seed % 11),
          .refresh_compression = {.filter = {.age_max = static_cast<std::uint32_t>(seed % 2), .threshold_max = 0},
                                  .capacity_rows = 1 + seed % 13},
          .dictionary_keys = seed % 5 == 4 ? 1000 : seed * 11 % 40,  // slots change their keys all the time
          .key_formats = seed / 2 % 9,
          .expire_every = seed % 4 == 1 ? 0 : 1 + static_cast<int>(seed % 3),
          .age = 1 + static_cast<int>(seed % 2),
          .placement = static_cast<PlacementPolicy>(seed / 2 % 4),
          .localize_every = seed % 3 == 2 ? 1 + static_cast<int>(seed / 3 % 4) : 0,
          .lookup_share = static_cast<double>(seed % 5) / 8,
          .barrier_share = static_cast<double>(seed % 4) / 6,
          .reduce_share = static_cast<double>(seed % 3) / 4};
}

TEST(StoreSimulation, EverySeedMatchesOneRank) {
  std::uint64_t const first = environment_number("GPUPS_SIM_FIRST", 0),
                      count = environment_number("GPUPS_SIM_SEEDS", 200);
  std::uint64_t late = 0, remote = 0, sums = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto const workload = workload_of(seed);
    auto const alone = train_all({Group::alone()}, workload);
    int const ranks = 2 + static_cast<int>(seed % 3);
    auto const all = train_all(Group::simulated(ranks, {.seed = seed, .delay_ms_max = 1.0 + seed % 50}), workload);
    ASSERT_EQ(all.hash, alone.hash);
    ASSERT_EQ(all.rows, alone.rows);
    late += all.late_keys;
    remote += all.remote_keys;
    sums += all.sums;
  }
  // Both refreshes and late fetches must have been tested.
  EXPECT_GT(late, 0U);
  EXPECT_GT(remote, late);
  EXPECT_GT(sums, count);
}

}  // namespace
}  // namespace gpups::test::simulation_store_test
