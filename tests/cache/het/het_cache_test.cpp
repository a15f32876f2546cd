// SPDX-License-Identifier: Apache-2.0
// The caches of HET evict the rows that a naive list evicts, and the frequency sketch counts uses.
#include "cache/placement/het/het_cache.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/cache/het/naive_cache.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::cache::het_cache_test {
namespace {

std::vector<Key> keys_of(HetCache const& cache) {
  std::vector<Key> keys;
  for (auto const& line : cache.lines()) keys.push_back(line.key);
  return keys;
}

// Uses a row, and inserts it if it has no line. Returns the row that is evicted.
std::optional<Key> use_or_insert(HetCache& cache, Key key) {
  if (cache.use(key) != nullptr) return std::nullopt;
  auto const evicted = cache.insert(key, 0);
  return evicted ? std::optional(evicted->key) : std::nullopt;
}

class HetCaches : public testing::TestWithParam<Eviction> {};

TEST_P(HetCaches, EvictTheRowsOfANaiveList) {
  std::size_t evictions = 0, rejections = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Random random(seed);
    std::size_t const lines_max = 1 + test::below(random, 12), range = 2 + test::below(random, 60);
    HetCache cache(GetParam(), lines_max);
    test::NaiveCache naive(GetParam(), lines_max);
    for (Key const key : test::zipf_keys(random, 600, range)) {
      bool const had = naive.use(key);
      auto* const line = cache.use(key);
      ASSERT_EQ(line != nullptr, had);
      ASSERT_EQ(cache.find(key), line);
      if (had) {
        ASSERT_EQ(line->key, key);
        ASSERT_EQ(line->version, number(key));
        ++line->updates;
        continue;
      }
      auto const evicted = cache.insert(key, number(key));
      auto const expected = naive.insert(key);
      ASSERT_EQ(evicted ? std::optional(evicted->key) : std::nullopt, expected);
      ASSERT_EQ(cache.find(key) != nullptr, naive.has(key));
      ASSERT_EQ(keys_of(cache), naive.in_order());
      ASSERT_LE(cache.size(), lines_max);
      evictions += evicted ? 1 : 0;
      rejections += cache.find(key) == nullptr ? 1 : 0;
    }
  }
  EXPECT_GT(evictions, 100);
  EXPECT_EQ(rejections > 0, GetParam() == Eviction::kTinyLfu);
}

TEST_P(HetCaches, ALineHasItsUpdatesWhenItIsEvicted) {
  HetCache cache(GetParam(), 1);
  EXPECT_EQ(cache.use(Key{1}), nullptr);
  EXPECT_FALSE(cache.insert(Key{1}, 7));
  cache.find(Key{1})->updates = 3;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cache.use(Key{2}), nullptr);
  auto const evicted = cache.insert(Key{2}, 9);
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->version, 7);
  EXPECT_EQ(evicted->updates, 3);
  EXPECT_EQ(cache.find(Key{1}), nullptr);
  EXPECT_EQ(cache.find(Key{2})->version, 9);
  EXPECT_EQ(cache.find(Key{2})->updates, 0);
}

INSTANTIATE_TEST_SUITE_P(All, HetCaches, testing::ValuesIn(kEvictions),
                         [](auto const& one) { return std::string(name_of(one.param)); });

// Rows 1 and 2 are used three times each, then rows 3 to 8 once.
TEST(HetCache, EvictionsDiffer) {
  std::map<Eviction, std::vector<Key>> left;
  for (auto const eviction : kEvictions) {
    HetCache cache(eviction, 3);
    for (std::uint64_t const key : {1, 2, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8}) use_or_insert(cache, Key{key});
    left[eviction] = keys_of(cache);
  }
  EXPECT_EQ(left[Eviction::kLru], (std::vector{Key{6}, Key{7}, Key{8}}));
  EXPECT_EQ(left[Eviction::kLfu], (std::vector{Key{8}, Key{1}, Key{2}}));
  EXPECT_EQ(left[Eviction::kTinyLfu], (std::vector{Key{1}, Key{2}, Key{3}}));
}

TEST(HetCache, EvictionsHaveNames) {
  for (auto const eviction : kEvictions) EXPECT_EQ(eviction_of(name_of(eviction)), eviction);
  test::expect_error([] { eviction_of("fifo"); }, {"'fifo'", "lru, lfu, tinylfu"});
}

TEST(FrequencySketch, CountsFewKeysExactly) {
  FrequencySketch sketch(1000);
  for (std::uint64_t key = 0; key < 20; ++key) {
    for (std::uint64_t use = 0; use < key; ++use) sketch.add(Key{key});
  }
  for (std::uint64_t key = 0; key < 20; ++key) {
    EXPECT_EQ(sketch.estimate(Key{key}), std::min<std::uint64_t>(key, FrequencySketch::kCountMax));
  }
}

// A sketch for few rows, so that many keys share counters.
TEST(FrequencySketch, NeverEstimatesTooFewUses) {
  constexpr std::size_t kRows = 50;
  FrequencySketch sketch(kRows);
  std::map<Key, std::uint32_t> uses;
  test::Random random(1);
  for (Key const key : test::zipf_keys(random, FrequencySketch::kUsesOfRow * kRows - 1, 100000)) {
    sketch.add(key);
    ++uses[key];
  }
  std::size_t exact = 0;
  for (auto const& [key, count] : uses) {
    auto const least = std::min(count, FrequencySketch::kCountMax);
    EXPECT_GE(sketch.estimate(key), least);
    exact += sketch.estimate(key) == least ? 1 : 0;
  }
  EXPECT_GT(uses.size(), 4 * kRows);
  EXPECT_GT(exact, uses.size() * 8 / 10);  // 7 of 10 if all counters of a key were incremented
}

TEST(FrequencySketch, HalvesCountersAfterAPeriod) {
  constexpr std::size_t kRows = 4, kPeriod = FrequencySketch::kUsesOfRow * kRows;
  FrequencySketch sketch(kRows);
  for (int use = 0; use < 9; ++use) sketch.add(Key{1});
  for (std::size_t use = 9; use < kPeriod - 1; ++use) sketch.add(Key{2});
  EXPECT_EQ(sketch.estimate(Key{1}), 9U);
  sketch.add(Key{2});
  EXPECT_EQ(sketch.estimate(Key{1}), 4U);
  for (std::size_t use = 0; use < kPeriod / 2 - 1; ++use) sketch.add(Key{2});
  EXPECT_EQ(sketch.estimate(Key{1}), 4U);
  sketch.add(Key{2});
  EXPECT_EQ(sketch.estimate(Key{1}), 2U);
}

}  // namespace
}  // namespace gpups::cache::het_cache_test
