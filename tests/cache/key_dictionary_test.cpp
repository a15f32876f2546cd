// SPDX-License-Identifier: Apache-2.0
// Key dictionaries: encoder and decoder agree on every slot, and invalid lists are rejected.
#include "cache/wire/key_dictionary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/support/expect_error.hpp"

namespace gpups::cache::key_dictionary_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string_view text(Bytes const& bytes) { return {reinterpret_cast<char const*>(bytes.data()), bytes.size()}; }

// The encoder of a reader, the decoder of an owner, and a map with the expected key of each slot.
struct Pair {
  explicit Pair(std::size_t capacity) : encoder(capacity), decoder(capacity) {}

  struct Sent {
    KeyList at_reader;
    KeyDecoder::DecodedList at_owner;
    std::size_t bytes;
  };
  Sent send(std::vector<Key> const& keys, std::int64_t step, std::int64_t now) {
    Bytes wire;
    Sent sent{encoder.wait_encode_keys(stream, View<Key const>(keys), Clock{step}, Clock{now}, wire), {}, wire.size()};
    auto left = text(wire);
    sent.at_owner = decoder.decode(left, keys.size(), Clock{step}, Clock{now});
    EXPECT_TRUE(left.empty());
    EXPECT_LE(wire.size(), key_bytes_max(keys.size()));
    check(keys, sent);
    return sent;
  }

  void check(std::vector<Key> const& keys, Sent const& sent) {
    auto const& [r, o, bytes] = sent;
    EXPECT_EQ(r.slots, o.slots);
    EXPECT_EQ(r.known, o.known);
    EXPECT_EQ(r.replaced, o.replaced);
    auto decoded = o.keys, want = keys;
    sort_keys(decoded);
    sort_keys(want);
    EXPECT_EQ(decoded, want);
    std::set<std::uint32_t> used;
    for (auto const& [slot, key] : o.replaced) {
      EXPECT_EQ(meaning.at(slot), key);
      meaning.erase(slot);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (o.slots[i] == kNoSlot) continue;
      EXPECT_TRUE(used.insert(o.slots[i]).second);
      EXPECT_EQ(meaning.contains(o.slots[i]), i < o.known);
      EXPECT_EQ(meaning.try_emplace(o.slots[i], o.keys[i]).first->second, o.keys[i]);
    }
  }

  Stream stream{Device::host(), 1};
  KeyEncoder encoder;
  KeyDecoder decoder;
  std::map<std::uint32_t, Key> meaning;  // the key of each slot
};

std::vector<Key> some_keys(std::mt19937_64& random, std::size_t most, std::uint64_t of, bool dense) {
  std::set<std::uint64_t> keys;
  for (std::size_t i = random() % (most + 1); i > 0; --i) keys.insert(random() % of);
  std::vector<Key> list;
  for (std::uint64_t const k : keys) list.push_back(Key{dense ? k : k * 0x9E3779B97F4A7C15U});
  std::shuffle(list.begin(), list.end(), random);
  return list;
}

// Small dictionaries and many batches in flight: slots often change their keys, but no slot does while a batch in
// flight uses it.
TEST(KeyDictionary, BothEndsAgreeOnEverySlot) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::size_t const capacity = random() % 60;
    Pair pair(capacity);
    std::multimap<std::int64_t, std::pair<std::uint32_t, Key>> in_flight;  // by step: slots and their keys
    for (std::int64_t now = 0; now < 60; ++now) {
      std::erase_if(in_flight, [now](auto const& use) { return use.first < now; });
      for (auto lists = random() % 3; lists > 0; --lists) {
        auto const keys = some_keys(random, random() % 4 == 0 ? 700 : 20, seed % 3 == 0 ? 2000 : 80, seed % 2 == 0);
        std::int64_t const step = now + 1 + static_cast<std::int64_t>(random() % 6);
        auto const& decoded = pair.send(keys, step, now).at_owner;
        for (std::size_t i = 0; i < keys.size(); ++i) {
          if (decoded.slots[i] != kNoSlot) in_flight.insert({step, {decoded.slots[i], decoded.keys[i]}});
        }
      }
      for (auto const& [step, use] : in_flight) ASSERT_EQ(pair.meaning.at(use.first), use.second) << "seed " << seed;
    }
    EXPECT_LE(pair.meaning.size(), capacity);
  }
}

TEST(KeyDictionary, FrequentKeysKeepTheirSlots) {
  Pair pair(100);
  std::vector<Key> hot, cold;
  for (std::uint64_t k = 0; k < 50; ++k) hot.push_back(Key{k << 40});
  pair.send(hot, 1, 0);
  std::size_t known = 0;
  for (std::int64_t now = 1; now < 200; ++now) {
    cold.clear();
    for (std::uint64_t k = 0; k < 20; ++k) cold.push_back(Key{~(k + 100 * static_cast<std::uint64_t>(now))});
    auto keys = hot;
    keys.insert(keys.end(), cold.begin(), cold.end());
    known += pair.send(keys, now + 1, now).at_owner.known;
  }
  EXPECT_EQ(known, 50U * 199);
}

// A list takes 5 bytes, one byte for each known key with a near neighbour, and 8 bytes for each other key.
TEST(KeyDictionary, KnownKeysTakeOneByte) {
  Pair pair(1 << 20);
  auto const bytes_each = [&](std::vector<Key> const& keys) {
    static std::int64_t now = 0;
    auto const bytes = pair.send(keys, now + 1, now).bytes;
    ++now;
    return static_cast<double>(bytes) / static_cast<double>(keys.size());
  };
  std::mt19937_64 random(7);
  std::vector<Key> spread, dense;
  for (std::uint64_t k = 0; k < 20000; ++k) spread.push_back(Key{random()}), dense.push_back(Key{(1ULL << 50) + 3 * k});
  EXPECT_NEAR(bytes_each(spread), 8, 0.001);
  EXPECT_NEAR(bytes_each(spread), 1, 0.001);
  EXPECT_NEAR(bytes_each(dense), 1, 0.001);
  std::vector<Key> tenth;
  std::sample(spread.begin(), spread.end(), std::back_inserter(tenth), 2000, random);
  EXPECT_LT(bytes_each(tenth), 1.1);
}

TEST(KeyDictionary, CapacityZeroKeepsNoKeys) {
  Pair pair(0);
  std::vector<Key> const keys{Key{5}, Key{1ULL << 60}, Key{0}, Key{~0ULL}};
  for (int i = 0; i < 3; ++i) {
    auto const sent = pair.send(keys, i + 1, i);
    EXPECT_EQ(sent.at_owner.known, 0U);
    EXPECT_EQ(sent.at_owner.keys, keys);
    EXPECT_EQ(sent.at_owner.slots, std::vector(4, kNoSlot));
  }
  EXPECT_EQ(pair.send({}, 9, 8).at_owner.keys.size(), 0U);
}

TEST(KeyDictionary, OrdersKeysByValue) {
  std::mt19937_64 random(4);
  for (std::size_t const count : {0U, 1U, 40U, 3000U}) {
    std::vector<Key> keys(count);
    for (auto& key : keys) key = Key{random()};
    auto sorted = keys;
    std::sort(sorted.begin(), sorted.end(), [](Key a, Key b) { return number(a) < number(b); });
    auto const order = order_by_value(View<Key const>(keys));
    ASSERT_EQ(order.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(keys[order[i]], sorted[i]);
    sort_keys(keys);
    EXPECT_EQ(keys, sorted);
  }
}

// Lists of wait_encode_known() can be decoded at any time, and do not change slots.
TEST(KeyDictionary, EncodeKnownDoesNotChangeSlots) {
  std::mt19937_64 random(5);
  Pair pair(300), same(300);
  for (std::int64_t now = 0; now < 60; ++now) {
    auto const named = some_keys(random, 90, 1500, false), listed = some_keys(random, 200, 1500, false);
    EXPECT_EQ(pair.send(named, now + 1, now).at_owner.slots, same.send(named, now + 1, now).at_owner.slots);
    Bytes wire;
    pair.encoder.wait_encode_known(pair.stream, View<Key const>(listed), wire);
    auto left = text(wire);
    auto decoded = pair.decoder.decode_known(left, listed.size());
    EXPECT_TRUE(left.empty());
    auto want = listed;
    sort_keys(want);
    sort_keys(decoded);
    EXPECT_EQ(decoded, want);
    std::size_t known = 0;
    for (auto const& [slot, key] : pair.meaning) known += std::count(want.begin(), want.end(), key) > 0 ? 1 : 0;
    std::size_t const fresh = want.size() - known;
    EXPECT_LE(wire.size(), want.empty() ? 0 : 5 + 2 * known + 8 * fresh);
    EXPECT_GE(wire.size(), want.empty() ? 0 : 5 + known + 8 * fresh);
  }
}

// -- invalid lists --

// Returns a list: the number of known keys, the coding, and the rest.
Bytes list(std::uint32_t known, std::uint8_t coding, Bytes const& rest) {
  Bytes bytes(4);
  std::memcpy(bytes.data(), &known, 4);
  bytes.push_back(coding);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

void expect_rejected(Bytes const& bytes, std::uint64_t count, std::size_t slots, char const* words) {
  test::expect_error(
      [&] {
        auto wire = text(bytes);
        decode_keys(wire, count, slots);
      },
      {words});
}

TEST(KeyDictionary, RejectsInvalidLists) {
  Bytes const eight(8, 0);
  expect_rejected({1, 0, 0}, 1, 9, "a truncated list of keys");
  expect_rejected(list(0, 2, eight), 1, 9, "unknown coding");
  expect_rejected(list(2, 0, eight), 1, 9, "more slots than keys");
  expect_rejected(list(0, 0, eight), 2, 9, "fewer bytes than its keys need");
  expect_rejected(list(0, 1, eight), std::uint64_t{1} << 40, 9, "fewer bytes than its keys need");
  expect_rejected(list(0xFFFFFFFF, 0, eight), 0xFFFFFFFF, 9, "fewer bytes than its keys need");
  expect_rejected(list(1, 0, {9}), 1, 9, "a slot that has no key yet");
  expect_rejected(list(2, 0, {4, 4}), 2, 9, "a slot that has no key yet");
  expect_rejected(list(1, 0, {0}), 1, 0, "a slot that has no key yet");
  expect_rejected(list(2, 0, {4, 0x80}), 2, 9, "does not end");
  expect_rejected(list(1, 0, Bytes(20, 0x80)), 1, 9, "does not end");
  expect_rejected(list(2, 0, {0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0}), 2, std::size_t{1} << 40, "exceeds the largest key");
  expect_rejected(list(0, 1, Bytes(9, 0xFF)), 1, 9, "does not end");
  Bytes at_the_end(10, 0xFF);
  at_the_end[8] = at_the_end[9] = 0;
  expect_rejected(list(0, 1, at_the_end), 2, 9, "exceeds the largest key");
}

// Any bytes are a list with at most as many keys as bytes, or an error.
TEST(KeyDictionary, AnyBytesGiveListOrError) {
  std::mt19937_64 random(1);
  int lists = 0;
  for (int i = 0; i < 100000; ++i) {
    Bytes bytes(random() % 40);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 4);
    auto wire = text(bytes);
    try {
      auto const keys = decode_keys(wire, random() % 8, random() % 300);
      EXPECT_LE(keys.known.size() + keys.fresh.size(), bytes.size());
      ++lists;
    } catch (comm::SerializationError const&) {
    }
  }
  EXPECT_GT(lists, 100);
}

}  // namespace
}  // namespace gpups::cache::key_dictionary_test
