// SPDX-License-Identifier: Apache-2.0
// Values that occur often enough are frequent; the other values of a category share one key.
#include "trainer/tasks/click/frequent_values.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/support/expect_error.hpp"
#include "trainer/tasks/click/entries.hpp"

namespace gpups::trainer::frequent_values_test {
namespace {

TEST(FrequentValues, HaveAtLeastTheMinimalCount) {
  std::mt19937_64 random(3);
  std::map<std::uint64_t, int> want;
  KeyCounts counts;
  for (int i = 0; i < 20000; ++i) {  // the table grows several times; 0 is a valid key
    std::uint64_t const key = random() % 4 == 0 ? random() % 7 : random() % 5000 * 0x9E3779B97F4A7C15U;
    ++want[key];
    counts.add(Key{key});
  }
  for (std::uint32_t least : {1U, 2U, 4U, 255U}) {
    FrequentValues const frequent = counts.at_least(least);
    std::size_t size = 0;
    for (auto const& [key, count] : want) {
      EXPECT_EQ(frequent.has(Key{key}), count >= static_cast<int>(least)) << key;
      size += count >= static_cast<int>(least) ? 1 : 0;
    }
    EXPECT_EQ(frequent.size(), size);
    EXPECT_FALSE(frequent.has(Key{12345678901U}));
  }
  EXPECT_FALSE(FrequentValues().has(Key{0}));
  EXPECT_FALSE(FrequentValues().has(Key{1}));
}

TEST(FrequentValues, RoundTripThroughCheckpoint) {
  KeyCounts counts;
  for (std::uint64_t key : {9U, 0U, 7U}) counts.add(Key{key});
  std::vector<Blob> const blobs{{"other", "x"}, to_blob(counts.at_least(1))};
  EXPECT_EQ(frequent_values(blobs).keys(), (std::vector<std::uint64_t>{0, 7, 9}));
  EXPECT_EQ(frequent_values(std::vector<Blob>{to_blob(FrequentValues())}).size(), 0U);
  test::expect_error([] { frequent_values({}); }, {"frequent_values", "choose another checkpoint"});
  test::expect_error([] { frequent_values(std::vector<Blob>{{"clicks/frequent_values", "abc"}}); }, {"cut"});
}

// Two categories have the salts 1 and 2. The only frequent value of the first one is 10.
TEST(FrequentValues, RareValuesOfACategoryShareOneKey) {
  SampleBatch samples{
      .samples = 3, .labels = {0, 1, 0}, .numbers = {}, .offsets = {}, .values = {10, 10, 11, 5, 12, 10}};
  std::vector<std::uint64_t> const keys{number(salted_key(1, 10)), number(salted_key(2, 5))};
  FrequentValues const frequent(keys);
  EntryPlan plan{.fields = {{1, 0, false, 0}, {2, 1, false, 1}}, .numbers = 0, .categories = 2};
  plan.slots = 2;
  plan.frequent = &frequent;
  std::vector<Key> const want{salted_key(1, 10), rare_key(2), rare_key(1), salted_key(2, 5), rare_key(1), rare_key(2)};
  EXPECT_EQ(make_entries(plan, samples, {}).keys, want);
  samples.offsets = {0, 1, 2, 3, 4, 5, 6};  // the same as lists
  EXPECT_EQ(make_entries(plan, samples, {}).keys, want);
  EXPECT_NE(rare_key(1), rare_key(2));
  EXPECT_NE(rare_key(1), salted_key(1, 11));
}

TEST(Entries, AreEqualForValuesAndListsOfOne) {
  std::mt19937_64 random(5);
  SampleBatch samples{.samples = 9};
  for (int i = 0; i < 9 * 3; ++i) samples.values.push_back(random());
  for (int i = 0; i < 9; ++i) samples.numbers.push_back(static_cast<float>(random() % 100));
  samples.labels.resize(9);
  std::vector<std::uint32_t> numbers(9);
  for (std::uint32_t i = 0; i < 9; ++i) numbers[i] = 100 + i;
  RowDropout const drop{.rate = 0.4, .seed = 2, .clock = Clock{7}, .sample_numbers = numbers};
  for (bool by_sample : {false, true}) {
    EntryPlan plan{.fields = {}, .numbers = 1, .categories = 3};
    for (std::uint32_t f = 0; f < 3; ++f) plan.fields.push_back({f + 1, f, false, f, by_sample ? 0 : f});
    plan.fields.push_back({9, 0, true, 3, by_sample ? 0 : 3U});
    plan.slots = by_sample ? 1 : 4;
    plan.by_sample = by_sample;
    for (RowDropout const& dropout : {RowDropout{}, drop}) {
      samples.offsets.clear();
      Entries const single = make_entries(plan, samples, dropout);
      for (std::uint32_t i = 0; i <= 27; ++i) samples.offsets.push_back(i);
      Entries const listed = make_entries(plan, samples, dropout);
      EXPECT_EQ(single.keys, listed.keys);
      EXPECT_EQ(single.sources, listed.sources);
      EXPECT_EQ(single.targets, listed.targets);
      EXPECT_EQ(single.coefficients, listed.coefficients);
      if (by_sample) {
        EXPECT_EQ(single.offsets, listed.offsets);
      }
    }
  }
}

}  // namespace
}  // namespace gpups::trainer::frequent_values_test
