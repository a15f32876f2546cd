// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/key_index.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "kernels/base/hash.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::kernels::key_index_test {
namespace {

using test::Random;
using Ids = std::vector<std::uint32_t>;

// An index, and the contents that it should have.
struct Model {
  Stream stream;
  KeyIndex index;
  std::map<std::uint64_t, std::uint32_t> ids{};
  Ids free{};  // ascending; the largest is reused first
  std::uint32_t ids_end = 0;
  int calls = 0;  // of erase_where()

  std::uint32_t next() {
    if (free.empty()) return ids_end++;
    auto const id = free.back();
    free.pop_back();
    return id;
  }
  void check_sizes() const {
    EXPECT_EQ(index.size(), ids.size());
    EXPECT_EQ(index.ids_end(), ids_end);
    EXPECT_LE(index.size(), index.capacity());
  }
  // A key may occur several times in `keys`.
  void insert(std::vector<Key> const& keys) {
    auto const there = to_device(stream, keys);
    Array<std::uint32_t> got(stream.device(), keys.size());
    auto const added = index.wait_find_or_insert(stream, there, got);
    Ids want, new_ids;
    for (Key key : keys) {
      auto const [place, is_new] = ids.try_emplace(number(key), 0);
      if (is_new) new_ids.push_back(place->second = next());
      want.push_back(place->second);
    }
    EXPECT_EQ(to_host(stream, added.view()), new_ids);
    EXPECT_EQ(to_host(stream, got.view()), want);
    check_sizes();
  }
  void forget(std::uint64_t key) {
    auto const place = ids.find(key);
    if (place == ids.end()) return;
    free.insert(std::upper_bound(free.begin(), free.end(), place->second), place->second);
    ids.erase(place);
  }
  void erase(std::vector<Key> const& keys) {
    index.wait_erase(stream, to_device(stream, keys));
    for (Key key : keys) forget(number(key));
    check_sizes();
  }
  // Erases the keys for which `goes` returns true, by their ids. Every other call gives ids that are free already, too,
  // and repeated ones, and kNoRow.
  void erase_where(std::function<bool(std::uint64_t)> const& goes) {
    bool const all_used = calls++ % 2 == 1;
    Ids gone = all_used ? Ids{} : free;
    std::vector<std::uint64_t> keys;
    for (auto const& [key, id] : ids) {
      if (!goes(key)) continue;
      gone.push_back(id);
      keys.push_back(key);
    }
    if (!all_used) gone.insert(gone.end(), {kNoRow, gone.empty() ? kNoRow : gone.back()});
    auto const there = to_device(stream, gone);
    KeyIndex::Erasure const erasure{&index, there, all_used};
    KeyIndex::wait_erase_ids(stream, {&erasure, 1});
    for (std::uint64_t key : keys) forget(key);
    check_sizes();
  }
  Ids want(std::vector<Key> const& keys) const {
    Ids want;
    for (Key key : keys) want.push_back(ids.contains(number(key)) ? ids.at(number(key)) : kNoRow);
    return want;
  }
  void find(std::vector<Key> const& keys) {
    auto const there = to_device(stream, keys);
    Array<std::uint32_t> got(stream.device(), keys.size());
    index.find(stream, there, got);
    EXPECT_EQ(to_host(stream, got.view()), want(keys));
  }
  void list() {
    auto const listed = to_host(stream, index.list_ids(stream).view());
    auto const keys = test::to_host(stream, index.keys(), index.ids_end());
    EXPECT_EQ(listed.size(), ids.size());
    EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end()));
    for (std::uint32_t id : listed) EXPECT_EQ(ids.at(keys[id]), id);
  }
};

std::vector<Key> draw(Random& random, std::size_t count, std::size_t range) {
  std::vector<Key> keys(count);
  for (Key& key : keys) key = test::scrambled(test::below(random, range));
  return keys;
}

TEST(KeyIndex, MatchesAMapOverRandomBatches) {
  for (Device const device : test::devices()) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      Random random(seed);
      Model model{Stream(device, static_cast<int>(1 + seed % 3)), KeyIndex(device, 10 * seed)};
      for (int batch = 0; batch < 40; ++batch) {
        std::size_t const range = 2000 * seed;
        model.insert(draw(random, test::below(random, 3000), range));
        model.find(draw(random, 1000, 2 * range));
        if (batch % 3 == 1) model.erase(draw(random, test::below(random, 1500), range));
        if (batch % 7 == 5) model.erase_where([&](std::uint64_t key) { return key % 3 == seed % 3; });
        model.find(draw(random, 1000, 2 * range));
      }
      model.list();
      EXPECT_GT(model.index.growths(), 0U);
    }
  }
}

// The index grows in steps. Keys are found, inserted and erased while they are in two arrays of buckets.
TEST(KeyIndex, FindsInsertsAndErasesWhileGrowing) {
  for (Device const device : test::devices()) {
    for (int const threads : {1, 2, 5}) {
      constexpr std::size_t kExpected = 300'000;
      Random random(static_cast<std::uint64_t>(threads));
      Model model{Stream(device, threads), KeyIndex(device, kExpected)};
      std::size_t count = model.index.capacity() - 500;
      model.insert(test::distinct_keys(count));
      std::size_t const bytes = model.index.bytes();
      EXPECT_EQ(model.index.growths(), 0U);
      std::size_t between = 0;  // batches at whose end there were two arrays
      for (int batch = 0; batch < 12; ++batch, count += 2000) {
        model.insert(test::distinct_keys(2000, count));
        between += model.index.bytes() > bytes * 8 / 5 ? 1 : 0;
        model.find(draw(random, 20'000, 2 * count));
        model.erase(draw(random, 50, count));
      }
      EXPECT_GT(between, 4U);
      EXPECT_LT(model.index.bytes(), bytes * 8 / 5);
      EXPECT_EQ(model.index.growths(), 1U);
      model.find(test::distinct_keys(count + 1000));
      model.list();
    }
  }
}

// Erased keys leave marks in buckets. The marks are removed when keys are moved, so memory does not grow.
TEST(KeyIndex, ErasingKeepsMemoryBounded) {
  Model model{Stream(Device::host(), 1), KeyIndex(Device::host(), 700)};
  model.insert(test::distinct_keys(700));
  std::size_t const bytes = model.index.bytes();
  for (std::uint64_t turn = 1; turn < 200; ++turn) {
    model.erase_where([](std::uint64_t) { return true; });
    EXPECT_EQ(model.index.size(), 0U);
    model.insert(test::distinct_keys(700, 700 * turn));
  }
  EXPECT_EQ(model.index.ids_end(), 700U);
  EXPECT_LE(model.index.bytes(), bytes + 2 * 702 * sizeof(std::uint32_t));  // of free numbers
  EXPECT_EQ(model.index.growths(), 0U);
}

TEST(KeyIndex, AcceptsEveryKeyValue) {
  for (Device const device : test::devices()) {
    Model model{Stream(device, 1), KeyIndex(device, 0)};
    std::vector<Key> const keys{Key{0}, Key{~std::uint64_t{0}}, Key{1}, Key{std::uint64_t{1} << 63}, Key{0xFFFFFFFF}};
    model.find(keys);
    model.insert({Key{1}});
    model.find(keys);
    model.insert(keys);
    model.insert(keys);
    model.find(keys);
    model.erase(keys);
    model.find(keys);
    model.insert({});
    model.erase({});
    model.insert(keys);
    model.find(keys);
  }
}

// The inverse of mix(), to make keys with given hashes.
std::uint64_t unmix(std::uint64_t x) {
  x ^= x >> 31 ^ x >> 62;
  x *= 0x319642B2D24D8EC3U;
  x ^= x >> 27 ^ x >> 54;
  x *= 0x96DE1B173F119089U;
  return x ^ x >> 30 ^ x >> 60;
}
Key key_with_hash(std::uint64_t hash) { return Key{unmix(hash) - 0x9E3779B97F4A7C15U}; }

// The search for every key starts at the same bucket near the end, so that the chain of buckets continues at the first
// bucket. The keys have equal tags in one round, and all tags in the other.
TEST(KeyIndex, FindsKeysThatAllHashToOneBucket) {
  ASSERT_EQ(hash_of(key_with_hash(12345)), 12345U);
  for (Device const device : test::devices()) {
    for (unsigned const shift : {32U, 48U}) {
      Model model{Stream(device, 2), KeyIndex(device, 3000)};
      std::vector<Key> keys;
      for (std::uint64_t k = 0; k < 2500; ++k) keys.push_back(key_with_hash(0xFFFFFFFE | (37 * k & 0xFFFF) << shift));
      std::vector<Key> const first(keys.begin(), keys.begin() + 1200);
      model.insert(first);
      model.find(keys);
      model.erase({keys.begin() + 100, keys.begin() + 900});
      model.find(keys);
      model.insert(keys);
      model.find(keys);
      EXPECT_EQ(model.index.growths(), 0U);
      model.insert(test::distinct_keys(9000));  // grows the index, which moves the chain
      EXPECT_GT(model.index.growths(), 0U);
      model.find(keys);
      model.erase(keys);
      model.find(keys);
    }
  }
}

TEST(KeyIndex, ExpectedKeysFitWithoutGrowing) {
  for (std::size_t const expected : std::vector<std::size_t>{1, 100, 5000, 70000}) {
    Model model{Stream(Device::host(), 2), KeyIndex(Device::host(), expected)};
    model.insert(test::distinct_keys(expected));
    EXPECT_EQ(model.index.growths(), 0U) << expected;
    EXPECT_EQ(model.index.bytes(), KeyIndex::bytes_for(expected));
    std::size_t const bytes = model.index.bytes();
    model.insert(test::distinct_keys(model.index.capacity() + 1, expected));
    EXPECT_GE(model.index.growths(), 1U);
    EXPECT_GT(model.index.bytes(), bytes);
    model.find(test::distinct_keys(expected));
  }
}

// New keys get ids in the order of their first occurrence in the batch, for any number of threads and size of the
// batch.
TEST(KeyIndex, NumbersNewKeysInBatchOrder) {
  for (Device const device : test::devices()) {
    for (int const threads : {1, 2, 3}) {
      Random random(7);
      Model model{Stream(device, threads), KeyIndex(device, 100)};
      model.insert(draw(random, 100'000, 30'000));
      model.insert(draw(random, 100'000, 60'000));
      std::vector<Key> one(50'000, test::scrambled(99'999));
      one.back() = test::scrambled(100'000);
      model.insert(one);
    }
  }
}

// With so many threads the range of hashes of some threads is within one bucket.
TEST(KeyIndex, MoreThreadsThanBucketsInsertRepeatedKeysOnce) {
  for (int const threads : {19, 28, 32}) {
    for (std::size_t const expected : {1, 64, 90}) {
      Model model{Stream(Device::host(), threads), KeyIndex(Device::host(), expected)};
      auto const known = test::distinct_keys(50);
      model.insert(known);
      std::vector<Key> batch;
      for (std::size_t i = 0; i < 32768; ++i) batch.push_back(i % 7 == 3 ? Key{77} : known[i % 50]);
      model.insert(batch);
    }
  }
}

// The index holds as many keys as it can without growing.
TEST(KeyIndex, FindsKeysAtMaximalLoad) {
  for (Device const device : test::devices()) {
    Model model{Stream(device, 2), KeyIndex(device, 40'000)};
    std::size_t const full = model.index.capacity();
    model.insert(test::distinct_keys(full));
    EXPECT_EQ(model.index.growths(), 0U);
    EXPECT_EQ(full, model.index.capacity());
    model.find(test::distinct_keys(2 * full));
  }
}

TEST(KeyIndex, SearchesManyIndexesInOneCall) {
  for (Device const device : test::devices()) {
    Random random(5);
    std::vector<Model> models;
    for (std::size_t k = 0; k < 70; ++k) {
      models.push_back({Stream(device, 2), KeyIndex(device, 50)});
      models.back().insert(draw(random, k % 5 == 4 ? 0 : 40 * k, 3000));
    }
    Stream stream(device, 3);
    std::vector<Array<Key>> keys;
    std::vector<std::vector<Key>> wanted;
    std::vector<Array<std::uint32_t>> ids;
    std::vector<KeyIndex::Search> searches;
    for (std::size_t k = 0; k < models.size(); ++k) {
      wanted.push_back(draw(random, k % 7 == 3 ? 0 : 1 + test::below(random, 300 * k + 1), 6000));
      keys.push_back(to_device(stream, wanted.back()));
      ids.emplace_back(device, wanted.back().size());
      searches.push_back({&models[k].index, keys.back(), ids.back()});
    }
    KeyIndex::find(stream, searches);
    for (std::size_t k = 0; k < models.size(); ++k) {
      EXPECT_EQ(to_host(stream, ids[k].view()), models[k].want(wanted[k])) << k;
    }
    KeyIndex::find(stream, {});
  }
}

}  // namespace
}  // namespace gpups::kernels::key_index_test
