// SPDX-License-Identifier: Apache-2.0
// The lists that homes and readers make of the owners of rows, compared with what each list is defined to have.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "kernels/base/hash.hpp"
#include "kernels/index/sort_keys.hpp"
#include "kernels/placement/home_lists.hpp"
#include "kernels/placement/partition.hpp"
#include "kernels/placement/reader_lists.hpp"
#include "kernels/rows/row_storage.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::kernels::placement_lists_test {
namespace {

using Words = std::vector<std::uint32_t>;

class PlacementListsOn : public test::OnDevice {
 protected:
  Array<std::uint32_t> words(std::size_t size) const { return {device(), size}; }
  Device device() const { return stream.device(); }
  // Returns the items of each list.
  std::vector<Words> partition(View<std::uint32_t const> list_of, std::uint32_t lists) {
    auto const items = words(list_of.size()), first = words(lists + 1);
    partition_items(stream, {list_of, lists, items, first});
    auto const all = to_host(stream, items.view());
    auto const begin = to_host(stream, first.view());
    std::vector<Words> parts;
    for (std::uint32_t l = 0; l < lists; ++l) parts.emplace_back(all.begin() + begin[l], all.begin() + begin[l + 1]);
    return parts;
  }

  test::Random random{7};
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }
  Stream stream{GetParam().is_host() || cuda_device_count() > 0 ? GetParam() : Device::host(), 2};
};

TEST_P(PlacementListsOn, PartitionKeepsTheOrderWithinLists) {
  for (std::uint32_t const n : {0U, 1U, 300U, 70'000U}) {
    for (std::uint32_t const lists : {1U, 7U, 500U, 8000U}) {
      Words list_of(n);
      std::vector<Words> expected(lists);
      for (std::uint32_t i = 0; i < n; ++i) {
        list_of[i] = below(10) == 0 ? kNoList : below(lists);
        if (list_of[i] != kNoList) expected[list_of[i]].push_back(i);
      }
      EXPECT_EQ(partition(to_device(stream, list_of), lists), expected) << n << " items, " << lists << " lists";
    }
  }
}

// One table, of which a home plans the uses of a step: batches of readers with two parts.
struct HomeUses {
  std::uint32_t ranks = 0, home = 0;
  struct PartOfReader {
    std::uint32_t reader, number;  // of its parts
    std::vector<Key> keys;         // ascending
    Words owners;                  // see RowOwners, of each key
  };
  std::vector<PartOfReader> parts{};
};
constexpr std::uint32_t kPartsOfReader = 2;

// Returns uses of few rows, of which half move.
HomeUses random_uses(test::Random& random, std::uint32_t ranks) {
  HomeUses uses{.ranks = ranks, .home = static_cast<std::uint32_t>(random() % ranks)};
  constexpr std::uint64_t kRows = 40;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> owners;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    auto const before = static_cast<std::uint32_t>(random() % ranks);
    owners.emplace_back(before, random() % 2 == 0 ? before : static_cast<std::uint32_t>(random() % ranks));
  }
  for (std::uint32_t reader = 0; reader < std::min(ranks, 5U); ++reader) {
    std::vector<bool> seen(kRows);
    for (std::uint32_t p = 0; p < kPartsOfReader; ++p) {
      auto& part = uses.parts.emplace_back(HomeUses::PartOfReader{reader, p, {}, {}});
      for (std::uint64_t row = 0; row < kRows; ++row) {
        if (random() % 3 == 0) continue;
        part.keys.push_back(Key{row});
        part.owners.push_back(RowOwners::word(owners[row].first, owners[row].second, seen[row]));
        seen[row] = true;
      }
    }
  }
  return uses;
}

// The lists of a home: for each owner, those of each reader; of each role, and of each part.
std::uint32_t home_list(std::uint32_t readers, std::uint32_t owner, std::uint32_t reader, RowRole role,
                        std::uint32_t part) {
  return (owner * readers + reader) * kRowRoles * kPartsOfReader + static_cast<std::uint32_t>(role) * kPartsOfReader +
         part;
}

class HomeListsOn : public PlacementListsOn {
 protected:
  // Returns the keys of each list.
  std::vector<std::vector<Key>> home_lists(HomeUses const& uses) {
    auto const readers = static_cast<std::uint32_t>(uses.parts.size()) / kPartsOfReader;
    std::vector<PartUses> parts;
    std::vector<Key> keys;
    Words placed;
    for (auto const& part : uses.parts) {
      parts.push_back({static_cast<std::uint32_t>(part.keys.size()), part.reader,
                       home_list(readers, 0, part.reader, RowRole::kReadAndUpdate, part.number), kPartsOfReader});
      keys.insert(keys.end(), part.keys.begin(), part.keys.end());
      placed.insert(placed.end(), part.owners.begin(), part.owners.end());
    }
    auto const list_of = words(2 * keys.size()), away = words(2 * parts.size());
    list_uses(stream, {.parts = parts,
                       .placed = to_device(stream, placed),
                       .home = uses.home,
                       .lists_of_owner = readers * kRowRoles * kPartsOfReader,
                       .list_of = list_of,
                       .away = away});
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto const& owners = uses.parts[p].owners;
      auto const flags = to_host(stream, away.view().slice(2 * p, 2));
      auto const is_away = [&](std::uint32_t word) { return RowOwners::of(word).before != uses.home; };
      auto const moves = [](std::uint32_t word) { return RowOwners::of(word).moves(); };
      EXPECT_EQ(flags[0] != 0, std::any_of(owners.begin(), owners.end(), is_away));
      EXPECT_EQ(flags[1] != 0, std::any_of(owners.begin(), owners.end(), moves));
    }
    std::vector<std::vector<Key>> lists;
    for (auto const& items : partition(list_of, uses.ranks * readers * kRowRoles * kPartsOfReader)) {
      auto const taken = Array<Key>(device(), items.size());
      take_keys(stream, to_device(stream, keys), to_device(stream, items), taken);
      lists.push_back(to_host(stream, taken.view()));
    }
    return lists;
  }
};

TEST_P(HomeListsOn, OwnersGetTheRowsThatTheySendReceiveAndPass) {
  for (std::uint32_t const ranks : {1U, 2U, 5U, 300U}) {
    auto const uses = random_uses(random, ranks);
    auto const readers = static_cast<std::uint32_t>(uses.parts.size()) / kPartsOfReader;
    auto const lists = home_lists(uses);
    for (auto const& part : uses.parts) {
      for (std::uint32_t owner = 0; owner < ranks; ++owner) {
        auto const expect = [&](RowRole role, std::function<bool(RowOwners)> const& has) {
          std::vector<Key> expected;
          for (std::size_t i = 0; i < part.keys.size(); ++i) {
            if (has(RowOwners::of(part.owners[i]))) expected.push_back(part.keys[i]);
          }
          EXPECT_EQ(lists[home_list(readers, owner, part.reader, role, part.number)], expected);
        };
        bool const is_reader = owner == part.reader;
        expect(RowRole::kReadAndUpdate, [&](RowOwners r) { return !r.moves() && r.before == owner && !is_reader; });
        expect(RowRole::kRead,
               [&](RowOwners r) { return r.moves() && r.in_step != part.reader && r.before == owner && !is_reader; });
        expect(RowRole::kUpdate,
               [&](RowOwners r) { return r.moves() && r.in_step != part.reader && r.in_step == owner; });
        expect(RowRole::kMove,
               [&](RowOwners r) { return r.moves() && r.in_step == part.reader && r.before == owner && !r.repeated; });
      }
    }
  }
}

// Owners get keys from the home, and the reader gets a route: both must have the same rows in the same order.
TEST_P(HomeListsOn, ReadersHaveTheListsOfOwners) {
  for (std::uint32_t const ranks : {2U, 5U, 300U}) {
    std::uint32_t const bytes = ranks > 256 ? 2 : 1;
    auto const uses = random_uses(random, ranks);
    auto const readers = static_cast<std::uint32_t>(uses.parts.size()) / kPartsOfReader;
    auto const at_home = home_lists(uses);
    for (std::uint32_t reader = 0; reader < readers; ++reader) {
      std::vector<Array<std::uint8_t>> columns;
      std::vector<Array<std::uint32_t>> positions;
      std::vector<Array<Key>> keys;
      std::vector<RoutedRows> routed;
      std::vector<ListRows::RowRange> parts;
      std::uint32_t rows = 0;
      for (std::uint32_t p = 0; p < kPartsOfReader; ++p) {
        auto const& part = uses.parts[reader * kPartsOfReader + p];
        auto const n = static_cast<std::uint32_t>(part.keys.size());
        // The reader's rows are in another order than those of the home.
        Words order(n);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        std::vector<Key> shuffled(n);
        for (std::uint32_t i = 0; i < n; ++i) shuffled[order[i]] = part.keys[i];
        columns.reserve(2 * kPartsOfReader);
        auto const& before = columns.emplace_back(device(), n * bytes);
        auto const& in_step = columns.emplace_back(device(), n * bytes);
        PartRoute const route{0, n, before, in_step};
        write_routes(stream, {{&route, 1}, to_device(stream, part.owners), bytes});
        routed.push_back({positions.emplace_back(to_device(stream, order)).view(),
                          keys.emplace_back(to_device(stream, shuffled)).view(), before, in_step, uses.home});
        parts.push_back({rows, n});
        rows += n;
      }
      auto const positions_of = words(rows), owners = words(rows), wrong = words(routed.size()), order = words(rows),
                 list_of = words(2 * rows), differ = words(kPartsOfReader);
      Array<Key> const all_keys(device(), rows), sorted(device(), rows);
      read_routes(stream, {routed, ranks, bytes, positions_of, owners, all_keys, wrong});
      EXPECT_EQ(to_host(stream, wrong.view()), Words(routed.size(), 0));
      SortedKeys const list{all_keys, sorted, order, 0};
      sort_keys(stream, {&list, 1});
      ListRows::RowRange const table{0, rows};
      list_rows(stream, {{&table, 1}, parts, sorted, order, owners, ranks, reader, list_of, differ});
      auto const lists = partition(list_of, kPartsOfReader * lists_of_part(ranks));
      for (std::uint32_t p = 0; p < kPartsOfReader; ++p) {
        auto const keys_of = [&](std::uint32_t number) {
          auto const& items = lists[p * lists_of_part(ranks) + number];
          auto const taken = words(items.size());
          take_positions(stream, {to_device(stream, items), order, positions_of, taken});
          auto const sorted_there = words(items.size());
          TakePositions::Unordered const all{0, static_cast<std::uint32_t>(items.size()), parts[p].size};
          take_positions(stream, {to_device(stream, items), order, positions_of, sorted_there, {&all, 1}});
          auto expected = to_host(stream, taken.view());
          if (device().is_host()) std::sort(expected.begin(), expected.end());
          EXPECT_EQ(to_host(stream, sorted_there.view()), expected);
          std::vector<Key> of_list;
          auto const part_keys = to_host(stream, keys[p].view());
          for (auto const position : to_host(stream, taken.view())) of_list.push_back(part_keys[position]);
          return of_list;
        };
        for (std::uint32_t owner = 0; owner < ranks; ++owner) {
          auto const of_home = [&](std::initializer_list<RowRole> roles) {
            std::vector<Key> joined;
            for (auto const role : roles) {
              auto const& some = at_home[home_list(readers, owner, reader, role, p)];
              joined.insert(joined.end(), some.begin(), some.end());
            }
            std::sort(joined.begin(), joined.end());
            return joined;
          };
          EXPECT_EQ(keys_of(reads_list(owner)), of_home({RowRole::kReadAndUpdate, RowRole::kRead}));
          EXPECT_EQ(keys_of(arriving_list(ranks, owner)), of_home({RowRole::kMove}));
          if (owner == reader) continue;
          EXPECT_EQ(keys_of(updates_list(ranks, owner)), of_home({RowRole::kReadAndUpdate, RowRole::kUpdate}));
        }
        auto const& part = uses.parts[reader * kPartsOfReader + p];
        auto const expect = [&](std::uint32_t number, std::function<bool(RowOwners)> const& has) {
          std::vector<Key> expected;
          for (std::size_t i = 0; i < part.keys.size(); ++i) {
            if (has(RowOwners::of(part.owners[i]))) expected.push_back(part.keys[i]);
          }
          EXPECT_EQ(keys_of(number), expected);
        };
        expect(leaving_list(ranks), [&](RowOwners r) { return r.moves() && r.before == reader; });
        expect(staying_list(ranks), [&](RowOwners r) { return !r.moves() && r.before == reader; });
        expect(local_list(ranks), [&](RowOwners r) { return r.in_step == reader; });
        expect(repeated_list(ranks), [&](RowOwners r) { return r.moves() && r.in_step == reader && r.repeated; });
        EXPECT_EQ(to_host(stream, differ.view())[p] != 0,
                  std::any_of(part.owners.begin(), part.owners.end(), [&](std::uint32_t word) {
                    return RowOwners::of(word).moves() && RowOwners::of(word).in_step != reader;
                  }));
      }
    }
  }
}

TEST_P(PlacementListsOn, WrongOwnersAreSaidByHome) {
  auto const positions = to_device(stream, Words{0, 1});
  auto const keys = to_device(stream, std::vector<Key>{Key{1}, Key{2}});
  auto const good = to_device(stream, std::vector<std::uint8_t>{0, 1}),
             bad = to_device(stream, std::vector<std::uint8_t>{0, 2});
  std::vector<RoutedRows> const routed{{positions, keys, good, good, 1}, {positions, keys, good, bad, 0}};
  auto const at = words(4), owners = words(4), wrong = words(2);
  Array<Key> const all(device(), 4);
  read_routes(stream, {routed, 2, 1, at, owners, all, wrong});
  EXPECT_EQ(to_host(stream, wrong.view()), (Words{0, 1}));
}

TEST_P(PlacementListsOn, AnswersAreDividedByOwnerAndHome) {
  constexpr std::uint32_t kRanks = 3, kRows = 50;
  Words owners, items, order(kRows), expected;
  std::vector<Key> keys;
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (std::uint32_t i = 0; i < kRows; ++i) {
    keys.push_back(Key{random()});
    owners.push_back(RowOwners::word(below(kRanks), below(kRanks), false));
    if (below(2) == 0) items.push_back(i);
  }
  for (auto const item : items) {
    auto const row = order[item];
    expected.push_back(RowOwners::of(owners[row]).before * kRanks + home_of(keys[row], kRanks));
  }
  auto const list_of = words(items.size());
  list_answers(stream, {to_device(stream, items), to_device(stream, order), to_device(stream, owners),
                        to_device(stream, keys), kRanks, list_of});
  EXPECT_EQ(to_host(stream, list_of.view()), expected);
}

TEST_P(PlacementListsOn, FirstKeyOfAnotherHomeIsFound) {
  constexpr std::uint32_t kHomes = 3;
  std::vector<Array<Key>> memory;
  std::vector<KeysOfHome> lists;
  Words expected;
  for (std::uint32_t l = 0; l < 9; ++l) {
    std::vector<Key> keys;
    while (keys.size() < 20 * l) {
      Key const key{random()};
      if (home_of(key, kHomes) == l % kHomes) keys.push_back(key);
    }
    expected.push_back(kNoRow);
    for (std::uint32_t i = 0; i < keys.size() && l % 2 == 1; ++i) {
      Key const key{random()};
      if (i < 7 || home_of(key, kHomes) == l % kHomes) continue;
      keys[i] = key;
      expected.back() = std::min(expected.back(), i);
    }
    lists.push_back({memory.emplace_back(to_device(stream, keys)).view(), l % kHomes, 0});
  }
  auto const foreign = words(lists.size());
  find_foreign(stream, lists, kHomes, foreign);
  EXPECT_EQ(to_host(stream, foreign.view()), expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, PlacementListsOn, test::kDevices, test::device_name);
INSTANTIATE_TEST_SUITE_P(Devices, HomeListsOn, test::kDevices, test::device_name);

}  // namespace
}  // namespace gpups::kernels::placement_lists_test
