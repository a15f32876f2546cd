// SPDX-License-Identifier: Apache-2.0
// Lists of keys are sorted and put one after another, on all devices.
#include "kernels/index/sort_keys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/index/indexed_keys.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::kernels::sort_keys_test {
namespace {

using test::Random;

std::vector<Key> random_keys(Random& random, std::size_t count, int bits) {
  std::vector<Key> keys(count);
  for (auto& key : keys) key = Key{random() >> (64 - bits)};
  return keys;
}

// Sorts all lists together, and compares each with a stable sort. Positions begin at 7, 8, 9 ...
void expect_sorted(Stream& stream, std::vector<std::vector<Key>> const& lists) {
  std::vector<Array<Key>> keys, sorted;
  std::vector<Array<std::uint32_t>> positions;
  std::vector<SortedKeys> arguments;
  for (auto const& list : lists) {
    auto const first = static_cast<std::uint32_t>(7 + arguments.size());
    keys.push_back(to_device(stream, list));
    sorted.emplace_back(stream.device(), list.size());
    positions.emplace_back(stream.device(), list.size());
    arguments.push_back({keys.back(), sorted.back(), positions.back(), first});
  }
  sort_keys(stream, arguments);
  for (std::size_t l = 0; l < lists.size(); ++l) {
    std::vector<std::uint32_t> order(lists[l].size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lists[l][a] < lists[l][b]; });
    auto const got = to_host(stream, sorted[l].view());
    auto const places = to_host(stream, positions[l].view());
    ASSERT_EQ(got.size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(got[i], lists[l][order[i]]) << "list " << l << ", place " << i;
      ASSERT_EQ(places[i], order[i] + arguments[l].first) << "list " << l << ", place " << i;
    }
  }
}

class SortKeysTest : public test::OnDevice {};
INSTANTIATE_TEST_SUITE_P(All, SortKeysTest, test::kDevices, test::device_name);

TEST_P(SortKeysTest, SortsEachListByItself) {
  Stream stream(GetParam(), 2);
  Random random(11);
  for (int const bits : {1, 20, 64}) {
    std::vector<std::vector<Key>> lists;
    for (std::size_t const count : {0U, 1U, 2U, 511U, 512U, 5000U, 0U, 3U}) {
      lists.push_back(random_keys(random, count, bits));
    }
    expect_sorted(stream, lists);
  }
}

TEST_P(SortKeysTest, SortsOneListManyListsAndNone) {
  Stream stream(GetParam(), 2);
  Random random(12);
  expect_sorted(stream, {});
  expect_sorted(stream, {{}, {}});
  expect_sorted(stream, {random_keys(random, 3000, 64)});
  std::vector<std::vector<Key>> many;
  for (int i = 0; i < 300; ++i) many.push_back(random_keys(random, random() % 40, 40));
  expect_sorted(stream, many);
}

TEST_P(SortKeysTest, SortsExtremeAndOrderedKeys) {
  Stream stream(GetParam(), 2);
  std::vector<Key> ascending, descending;
  for (std::uint64_t k = 0; k < 2000; ++k) ascending.push_back(Key{3 * k}), descending.push_back(Key{~k});
  expect_sorted(stream, {{Key{~0ULL}, Key{0}, Key{1ULL << 63}, Key{~0ULL}}, ascending, descending});
}

// The host merges two ascending pieces without a copy.
TEST_P(SortKeysTest, SortsFewAscendingPieces) {
  Random random(3);
  Stream stream(GetParam(), 2);
  std::vector<std::vector<Key>> lists;
  for (std::size_t const first : {0, 1, 500}) {
    for (std::size_t const second : {0, 1, 2, 700}) {
      for (std::size_t const third : {0, 1}) {
        auto& list = lists.emplace_back();
        for (std::size_t const size : {first, second, third}) {
          auto piece = random_keys(random, size, 9);  // some keys are in several pieces
          std::sort(piece.begin(), piece.end());
          list.insert(list.end(), piece.begin(), piece.end());
        }
      }
    }
  }
  expect_sorted(stream, lists);
}

TEST_P(SortKeysTest, ConcatenatesLists) {
  Stream stream(GetParam(), 2);
  Random random(13);
  for (std::size_t const count : {0U, 1U, 5U, 200U}) {
    std::vector<Array<Key>> keys;
    std::vector<View<Key const>> lists;
    std::vector<Key> want;
    for (std::size_t i = 0; i < count; ++i) {
      auto const list = random_keys(random, random() % 50, 64);
      want.insert(want.end(), list.begin(), list.end());
      lists.push_back(keys.emplace_back(to_device(stream, list)));
    }
    Array<Key> const all(stream.device(), want.size());
    concatenate_keys(stream, lists, all);
    EXPECT_EQ(to_host(stream, all.view()), want);
  }
}

TEST(IndexedKeys, SortMatchesStableSort) {
  Random random(3);
  for (int const bits : {1, 11, 12, 32, 63, 64}) {
    std::vector<IndexedKey> places;
    for (std::uint32_t i = 0; i < 5000; ++i) places.push_back({random() >> (64 - bits), i});
    auto want = places;
    std::stable_sort(want.begin(), want.end(), [](auto const& a, auto const& b) { return a.value < b.value; });
    sort_by_value(places);
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_EQ(places[i].index, want[i].index) << bits;
  }
}

// Few pieces are merged, many are sorted.
TEST(IndexedKeys, AscendingPiecesMatchStableSort) {
  Random random(4);
  auto const less = [](IndexedKey const& a, IndexedKey const& b) { return a.value < b.value; };
  for (std::size_t pieces = 1; pieces <= 12; ++pieces) {
    std::vector<IndexedKey> places;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      std::vector<IndexedKey> ascending(piece % 3 == 2 ? 1 : 200 + random() % 900);
      for (auto& place : ascending) place.value = random() % 3000;
      std::sort(ascending.begin(), ascending.end(), less);
      places.insert(places.end(), ascending.begin(), ascending.end());
    }
    for (std::uint32_t i = 0; i < places.size(); ++i) places[i].index = i;
    auto want = places;
    std::stable_sort(want.begin(), want.end(), less);
    std::vector<IndexedKey> spare;
    sort_by_value(places, spare);
    EXPECT_EQ(spare.empty(), pieces == 1);
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_EQ(places[i].index, want[i].index) << pieces;
  }
}

}  // namespace
}  // namespace gpups::kernels::sort_keys_test
