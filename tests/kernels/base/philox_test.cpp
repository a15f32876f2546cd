// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/philox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/base/hash.hpp"

namespace gpups::kernels::philox_test {
namespace {

void expect_words(Philox4 got, std::vector<std::uint32_t> const& want) {
  EXPECT_TRUE(std::equal(want.begin(), want.end(), got.word)) << std::hex << got.word[0];
}

// The expected words are the test vectors of Random123, the library of Philox's authors.
TEST(Philox, MatchesPublishedTestVectors) {
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;
  expect_words(philox({{0, 0}}, {{0, 0, 0, 0}}), {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});
  expect_words(philox({{kOnes, kOnes}}, {{kOnes, kOnes, kOnes, kOnes}}),
               {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD});
  static_assert(philox({{0, 0}}, {{0, 0, 0, 0}}).word[0] == 0x6627E8D5, "philox() is also evaluated at compile time");
}

TEST(Philox, UniformIsInHalfOpenUnitInterval) {
  EXPECT_EQ(uniform01(0), 0.0F);
  EXPECT_LT(uniform01(0xFFFFFFFF), 1.0F);
}

TEST(Hash, OwnersAreBalancedAndOrderedByHash) {
  for (std::uint32_t homes : {1U, 2U, 3U, 7U}) {
    std::vector<std::size_t> keys(homes, 0);
    std::size_t const n = 70000;
    for (std::uint64_t k = 0; k < n; ++k) ++keys.at(home_of(Key{k}, homes));
    for (std::size_t const count : keys) {
      EXPECT_NEAR(static_cast<double>(count), static_cast<double>(n) / homes, 600) << homes;
    }
    EXPECT_LE(home_of_hash(0x7FFFFFFFFFFFFFFF, homes), home_of_hash(0x8000000000000000, homes));
    EXPECT_EQ(home_of_hash(~std::uint64_t{0}, homes), homes - 1);
  }
}

TEST(Hash, EveryInputBitFlipsHalfTheOutputBits) {
  for (int bit = 0; bit < 64; ++bit) {
    int changed = 0;
    for (std::uint64_t k = 0; k < 64; ++k) {
      std::uint64_t const x = k * 0x123456789ABCDEF;
      changed += __builtin_popcountll(mix(x) ^ mix(x ^ std::uint64_t{1} << bit));
    }
    EXPECT_NEAR(changed, 32 * 64, 250) << "bit " << bit;
  }
}

}  // namespace
}  // namespace gpups::kernels::philox_test
