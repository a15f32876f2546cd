// SPDX-License-Identifier: Apache-2.0
#include "kernels/key_index.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <unordered_map>

#include "tests/inputs.hpp"

namespace gpups::kernels {
namespace {

using test::Random;
using Ids = std::vector<std::uint32_t>;

std::vector<Device> devices() {
  std::vector<Device> all{Device::host()};
  if (cuda_device_count() > 0) all.push_back(Device::cuda(0));
  return all;
}

// An index, and what it should hold.
struct Model {
  Stream stream;
  KeyIndex index;
  std::unordered_map<std::uint64_t, std::uint32_t> ids{};
  std::vector<std::uint32_t> free{};  // ascending; the last is taken first
  std::uint32_t ids_end = 0;

  std::uint32_t next() {
    if (free.empty()) return ids_end++;
    auto const id = free.back();
    free.pop_back();
    return id;
  }
  // Forgets keys of which `goes` says so.
  void forget(std::function<bool(std::uint64_t)> const& goes) {
    Ids keep(2 * std::size_t{ids_end}, 0);
    std::erase_if(ids, [&](auto const& entry) { return goes(entry.first); });
    for (auto const& [key, id] : ids) keep[2 * id] = 1 + id;
    free.clear();
    for (std::uint32_t id = 0; id < ids_end; ++id) {
      if (keep[2 * id] == 0) free.push_back(id);
    }
    auto const kept = test::rows(stream, keep, ids_end, 2);
    index.wait_forget(stream, kept.const_ref(), to_device(stream, free));
    EXPECT_EQ(index.size(), ids.size());
    EXPECT_EQ(index.ids_end(), ids_end);
  }
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
    EXPECT_EQ(index.size(), ids.size());
    EXPECT_EQ(index.ids_end(), ids_end);
    EXPECT_LE(index.size(), index.capacity());
    EXPECT_EQ(to_host(stream, got.view()), want);
  }
  void find(std::vector<Key> const& keys) {
    auto const there = to_device(stream, keys);
    Array<std::uint32_t> got(stream.device(), keys.size());
    index.find(stream, there, got);
    Ids want;
    for (Key key : keys) {
      auto const found = ids.find(number(key));
      want.push_back(found == ids.end() ? kNoRow : found->second);
    }
    EXPECT_EQ(to_host(stream, got.view()), want);
  }
};

TEST(KeyIndex, BehavesLikeAMapOverRandomBatches) {
  for (Device const device : devices()) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Random random(seed);
      Model model{Stream(device, static_cast<int>(1 + seed % 2)), KeyIndex(device, 10 * seed)};
      for (int batch = 0; batch < 30; ++batch) {
        std::vector<Key> keys;
        for (auto k : test::distinct_ids(random, test::below(random, 900), 20000)) keys.push_back(test::scrambled(k));
        model.insert(keys);
        for (int k = 0; k < 500; ++k) keys.push_back(test::scrambled(test::below(random, 40000)));
        model.find(keys);
      }
      EXPECT_GT(model.index.growths(), 4U);
      auto const keys = test::to_host(model.stream, model.index.keys(), model.index.size());
      for (std::uint32_t id = 0; id < keys.size(); ++id) EXPECT_EQ(model.ids.at(keys[id]), id);
    }
  }
}

// Numbers of forgotten keys go to new ones, and the others are still found.
TEST(KeyIndex, ForgetsKeys) {
  for (Device const device : devices()) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Random random(seed);
      Model model{Stream(device, static_cast<int>(1 + seed % 2)), KeyIndex(device, 10)};
      std::vector<Key> every;
      for (std::uint64_t k = 0; k < 6000; ++k) every.push_back(test::scrambled(k));
      for (int batch = 0; batch < 20; ++batch) {
        std::vector<Key> keys;
        for (auto k : test::distinct_ids(random, test::below(random, 2000), 6000)) keys.push_back(test::scrambled(k));
        model.insert(keys);
        std::uint64_t const share = test::below(random, 4);  // of 3 keys: none, some or all
        if (batch % 2 == 1) model.forget([&](std::uint64_t key) { return key % 3 < share; });
        model.find(every);
      }
      EXPECT_LE(model.index.ids_end(), every.size());
    }
  }
}

TEST(KeyIndex, ForgettingBoundsAStreamOfNewKeys) {
  Model model{Stream(Device::host(), 1), KeyIndex(Device::host(), 100)};
  std::size_t bytes = 0;
  for (std::uint64_t turn = 0; turn < 50; ++turn) {
    model.insert(test::distinct_keys(700, 700 * turn));
    model.forget([](std::uint64_t) { return true; });
    if (turn == 0) bytes = model.index.bytes();
  }
  EXPECT_EQ(model.index.ids_end(), 700U);
  EXPECT_EQ(model.index.bytes(), bytes);
}

TEST(KeyIndex, EveryKeyIsLegal) {
  for (Device const device : devices()) {
    Model model{Stream(device, 1), KeyIndex(device, 0)};
    std::vector<Key> const keys{Key{0}, Key{~std::uint64_t{0}}, Key{1}, Key{std::uint64_t{1} << 63}, Key{0xFFFFFFFF}};
    model.find(keys);
    model.insert({Key{1}});
    model.find(keys);
    model.insert(keys);
    model.insert(keys);
    model.find(keys);
    model.insert({});
  }
}

TEST(KeyIndex, ExpectedKeysFitWithoutGrowing) {
  for (std::size_t const expected : std::vector<std::size_t>{1, 100, 5000, 70000}) {
    Model model{Stream(Device::host(), 2), KeyIndex(Device::host(), expected)};
    model.insert(test::distinct_keys(expected));
    EXPECT_EQ(model.index.growths(), 0U) << expected;
    std::size_t const bytes = model.index.bytes();
    model.insert(test::distinct_keys(model.index.capacity() + 1, expected));
    EXPECT_GE(model.index.growths(), 1U);
    EXPECT_GT(model.index.bytes(), bytes);
    model.find(test::distinct_keys(expected));
  }
}

}  // namespace
}  // namespace gpups::kernels
