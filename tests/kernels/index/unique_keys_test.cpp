// SPDX-License-Identifier: Apache-2.0
// Distinct keys of lists that are hard to split, and of many lists in one call.
#include "kernels/index/unique_keys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/base/hash.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::kernels::unique_keys_test {
namespace {

using test::Random;
using Ids = std::vector<std::uint32_t>;

struct Found {
  std::vector<Key> unique;
  Ids positions, home_offsets, offsets, order;
  bool operator==(Found const&) const = default;
};

// Returns the results of each list; all lists are handled in one call.
std::vector<Found> find(Stream& stream, std::vector<std::vector<Key>> const& lists, std::uint32_t homes,
                        bool ordered = true) {
  Device const device = stream.device();
  std::vector<Array<Key>> keys, unique;
  std::vector<Array<std::uint32_t>> positions, offsets, order;
  std::vector<Found> found(lists.size());
  std::vector<KeyPart> parts;
  for (std::size_t p = 0; p < lists.size(); ++p) {
    std::size_t const n = lists[p].size();
    keys.push_back(to_device(stream, lists[p]));
    unique.emplace_back(device, n);
    positions.emplace_back(device, n);
    offsets.emplace_back(device, ordered ? n + 1 : 0);
    order.emplace_back(device, ordered ? n : 0);
    found[p].home_offsets.assign(homes + 1, 12345);
    parts.push_back(
        {keys[p], unique[p], positions[p], View<std::uint32_t>(found[p].home_offsets), offsets[p], order[p]});
  }
  wait_unique_keys(stream, {parts, homes});
  for (std::size_t p = 0; p < lists.size(); ++p) {
    std::size_t const rows = found[p].home_offsets.back();
    found[p].unique = to_host(stream, unique[p].view().slice(0, rows));
    found[p].positions = to_host(stream, positions[p].view());
    if (ordered) found[p].offsets = to_host(stream, offsets[p].view().slice(0, rows + 1));
    found[p].order = to_host(stream, order[p].view());
  }
  return found;
}

// Checks everything except the order of keys within a home, which is not specified.
void expect_right(Found const& found, std::vector<Key> const& keys, std::uint32_t homes) {
  std::unordered_map<std::uint64_t, Ids> entries;
  for (std::uint32_t i = 0; i < keys.size(); ++i) entries[number(keys[i])].push_back(i);
  Ids home_offsets(homes + 1, 0), positions(keys.size()), offsets{0}, order;
  ASSERT_EQ(found.unique.size(), entries.size());
  for (std::uint32_t r = 0; r < found.unique.size(); ++r) {
    Ids& of_key = entries[number(found.unique[r])];
    for (std::uint32_t const i : of_key) positions[i] = r;
    order.insert(order.end(), of_key.begin(), of_key.end());
    offsets.push_back(static_cast<std::uint32_t>(order.size()));
    of_key.clear();  // a key that is listed twice has no entries left
    ++home_offsets[home_of(found.unique[r], homes) + 1];
  }
  std::partial_sum(home_offsets.begin(), home_offsets.end(), home_offsets.begin());
  EXPECT_TRUE(std::is_sorted(found.unique.begin(), found.unique.end(),
                             [=](Key a, Key b) { return home_of(a, homes) < home_of(b, homes); }));
  EXPECT_TRUE(found.home_offsets == home_offsets);
  EXPECT_TRUE(found.positions == positions);
  EXPECT_TRUE(found.offsets.empty() || found.offsets == offsets);
  EXPECT_TRUE(found.order.empty() || found.order == order);
}

// Lists that could overflow a hash table or a bucket.
std::map<std::string, std::vector<Key>> hard_lists() {
  std::map<std::string, std::vector<Key>> lists;
  lists["no keys"] = {};
  lists["one key"] = std::vector<Key>(1'000'000, Key{7});
  lists["keys that could stand for an empty slot"] = {Key{0}, Key{~std::uint64_t{0}}, Key{0}, Key{1},
                                                      Key{~std::uint64_t{0}}};
  lists["all distinct"] = test::distinct_keys(100'000);
  auto& bucket = lists["one bucket"];
  for (std::uint64_t k = 0; bucket.size() < 100'000; ++k) {
    if (home_of(Key{k}, 64) == 5) bucket.push_back(Key{k});
  }
  auto& slot = lists["one slot"];
  for (std::uint64_t k = 0; slot.size() < 300; ++k) {
    if (hash_of(Key{k}) % 4096 == 77) slot.push_back(Key{k});
  }
  Random random(5);
  lists["frequent and rare"] = test::zipf_keys(random, 200'000, 10'000'000);
  return lists;
}

TEST(UniqueKeys, FindsDistinctKeysOfHardLists) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    for (auto const& [name, keys] : hard_lists()) {
      for (std::uint32_t const homes : {1U, 2U, 5U, 300U}) {
        SCOPED_TRACE(testing::Message() << name << ", " << homes << " homes, " << to_string(device));
        expect_right(find(stream, {keys}, homes)[0], keys, homes);
      }
    }
  }
}

TEST(UniqueKeys, ResultIsIndependentOfThreadCount) {
  for (auto const& [name, keys] : hard_lists()) {
    for (std::uint32_t const homes : {1U, 3U}) {
      Stream one(Device::host(), 1);
      auto const want = find(one, {keys}, homes);
      for (int threads = 2; threads <= 5; ++threads) {
        Stream stream(Device::host(), threads);
        EXPECT_TRUE(find(stream, {keys}, homes) == want) << name << ", " << threads << " threads";
      }
    }
  }
}

// Parts of different sizes that share keys. Results are those of a call with each part alone.
TEST(UniqueKeys, ManyPartsEqualSeparateCalls) {
  Random random(6);
  std::vector<std::vector<Key>> lists;
  for (std::size_t const n : {0, 4096, 4096, 1, 90'000, 0, 4096, 20'000, 3, 0}) {
    lists.push_back(test::zipf_keys(random, n, 5000));
  }
  for (Device const device : test::devices()) {
    for (std::uint32_t homes = 1; homes <= 5; ++homes) {
      Stream stream(device, 3);
      auto const together = find(stream, lists, homes);
      for (std::size_t p = 0; p < lists.size(); ++p) {
        SCOPED_TRACE(testing::Message() << "part " << p << ", " << homes << " homes");
        expect_right(together[p], lists[p], homes);
        EXPECT_TRUE(find(stream, {lists[p]}, homes)[0] == together[p]);
      }
    }
  }
}

TEST(UniqueKeys, EntriesOfKeysAreOptional) {
  Random random(7);
  for (std::size_t const n : {500, 50'000}) {
    auto const keys = test::zipf_keys(random, n, 1000);
    for (Device const device : test::devices()) {
      Stream stream(device, 2);
      auto const found = find(stream, {keys}, 2, false)[0], ordered = find(stream, {keys}, 2)[0];
      expect_right(found, keys, 2);
      EXPECT_EQ(found.unique, ordered.unique);
      EXPECT_EQ(found.positions, ordered.positions);
    }
  }
}

TEST(UniqueKeys, AcceptsNoParts) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    EXPECT_TRUE(find(stream, {}, 3).empty());
  }
}

}  // namespace
}  // namespace gpups::kernels::unique_keys_test
