// SPDX-License-Identifier: Apache-2.0
// Key dictionaries: lists arrive as they were sent, known keys take few bytes, memory follows the keys that return, and
// invalid lists are rejected.
#include "cache/wire/key_dictionary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "tests/support/expect_error.hpp"

namespace gpups::cache::key_dictionary_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string_view text(Bytes const& bytes) { return {reinterpret_cast<char const*>(bytes.data()), bytes.size()}; }

// Returns the number of keys of a list that are sent as wide gaps.
std::size_t new_keys_of(Bytes const& wire, std::size_t count) {
  std::size_t fresh = 0;
  for (std::size_t i = 0; i < count; ++i) fresh += (wire[1 + i / 4] >> i % 4 * 2 & 3) == 3 ? 1 : 0;
  return fresh;
}

// The encoder of a reader and the decoder of an owner.
struct Pair {
  explicit Pair(std::size_t capacity) : encoder(capacity), decoder(capacity) {}

  struct Sent {
    std::size_t fresh, bytes;
  };
  Sent send(std::vector<Key> const& keys) {
    Bytes wire;
    encoder.encode(View<Key const>(keys), wire);
    auto left = text(wire);
    EXPECT_EQ(decoder.decode(left, keys.size()), keys);
    EXPECT_TRUE(left.empty());
    EXPECT_LE(wire.size(), key_bytes_max(keys.size()));
    return {new_keys_of(wire, keys.size()), wire.size()};
  }

  KeyEncoder encoder;
  KeyDecoder decoder;
};

// Returns ascending keys: of 0 .. of - 1, or the same spread over 64 bits.
std::vector<Key> some_keys(std::mt19937_64& random, std::size_t most, std::uint64_t of, bool dense) {
  std::set<Key> keys;
  for (std::size_t i = random() % (most + 1); i > 0; --i) {
    std::uint64_t const k = random() % of;
    keys.insert(Key{dense ? k * (k % 3 == 0 ? 1 : 70000) : k * 0x9E3779B97F4A7C15U});
  }
  return {keys.begin(), keys.end()};
}

// Returns `count` keys that are spread over 64 bits, of a sequence of distinct ones.
std::vector<Key> spread_keys(std::uint64_t first, std::uint64_t count) {
  std::vector<Key> keys;
  for (std::uint64_t k = first; k < first + count; ++k) keys.push_back(Key{~k * 0x9E3779B97F4A7C15U});
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(KeyDictionary, ListsArriveAsTheyWereSent) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::size_t const capacity = seed % 5 == 4 ? 100000 : random() % 60;
    Pair pair(capacity);
    for (int i = 0; i < 60; ++i) {
      pair.send(some_keys(random, random() % 4 == 0 ? 700 : 20, seed % 3 == 0 ? 2000 : 80, seed % 2 == 0));
      ASSERT_LE(pair.decoder.size(), capacity);
    }
  }
}

TEST(KeyDictionary, ExtremeKeysArrive) {
  Pair pair(100);
  std::vector<Key> const keys{Key{0}, Key{1}, Key{300}, Key{70000}, Key{1ULL << 63}, Key{~1ULL}, Key{~0ULL}};
  for (int i = 0; i < 3; ++i) pair.send(keys);
  pair.send({Key{~0ULL}});
  pair.send({});
}

// Readers send no list to a home of which a batch has no keys; if other tables have some, the home decodes an empty
// one.
TEST(KeyDictionary, EmptyListsChangeNothing) {
  Pair pair(std::size_t{1} << 20);
  std::string_view nothing;
  for (std::uint64_t i = 0; i < 40; ++i) {
    pair.send(spread_keys(i * 5000, i % 3 == 0 ? 5000 : 100));
    EXPECT_EQ(pair.decoder.decode(nothing, 0), std::vector<Key>{});
  }
}

TEST(KeyDictionary, FrequentKeysKeepTheirSlots) {
  Pair pair(100);
  auto const hot = spread_keys(0, 50);
  pair.send(hot);
  for (std::uint64_t i = 1; i < 200; ++i) {
    auto keys = hot;
    auto const cold = spread_keys(1000 * i, 20);
    keys.insert(keys.end(), cold.begin(), cold.end());
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(pair.send(keys).fresh, 20U);
  }
}

// The rule of RecentKeys: memory follows the keys that return.
TEST(KeyDictionary, KeysThatNeverReturnTakeBoundedMemory) {
  Pair pair(std::size_t{1} << 20);
  auto const bytes = [&] { return pair.encoder.bytes() + pair.decoder.bytes(); };
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(pair.send(spread_keys(i * 300, 300)).fresh, 300U);
    EXPECT_LE(pair.decoder.size(), 2 * (4096U + 300U));
    most = std::max(most, bytes());
  }
  EXPECT_LE(most, 500000U);  // of 600,000 keys, which would take 18 MB

  // A larger working set fills the dictionary, and the dictionary shrinks when most of it is not used any more.
  for (int i = 0; i < 5; ++i) pair.send(spread_keys(1 << 24, 100000));
  EXPECT_GE(pair.decoder.size(), 100000U);
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(pair.send(spread_keys(1 << 24, 1000)).fresh, 0U);
  EXPECT_LE(pair.decoder.size(), 1000U);
  EXPECT_LE(bytes(), 100000U);
}

TEST(KeyDictionary, WorkingSetsAreKnown) {
  Pair pair(std::size_t{1} << 20);
  std::mt19937_64 random(3);
  auto const all = spread_keys(0, 20000);
  std::size_t fresh = pair.send(all).fresh;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    std::vector<Key> keys = spread_keys((i + 100) << 20, 300);  // beside keys that never return
    std::sample(all.begin(), all.end(), std::back_inserter(keys), 500, random);
    std::sort(keys.begin(), keys.end());
    fresh += pair.send(keys).fresh - 300;
  }
  EXPECT_LE(fresh, 20010U);
  EXPECT_LE(pair.decoder.size(), 20000U + 2 * 8 * 20000U);

  Pair turns(std::size_t{1} << 20);  // large lists that take turns
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(turns.send(spread_keys(i % 3 * 10000, 10000)).fresh, i < 3 ? 10000U : 0U);
  }
}

// Besides the forms, of 2 bits: a known key takes one byte if the keys that were new with it are known too, else the
// bytes of a slot. Other keys take their gap.
TEST(KeyDictionary, KnownKeysTakeFewBytes) {
  Pair pair(1 << 20);
  auto const bytes_each = [&](std::vector<Key> const& keys) {
    return static_cast<double>(pair.send(keys).bytes) / static_cast<double>(keys.size());
  };
  std::mt19937_64 random(7);
  std::vector<Key> dense, tenth;
  auto const spread = spread_keys(0, 20000);
  for (std::uint64_t k = 0; k < 20000; ++k) dense.push_back(Key{(1ULL << 50) + 3 * k});
  EXPECT_NEAR(bytes_each(spread), 7.25, 0.001);
  EXPECT_NEAR(bytes_each(spread), 1.25, 0.001);
  EXPECT_NEAR(bytes_each(dense), 1.25, 0.001);
  std::sample(spread.begin(), spread.end(), std::back_inserter(tenth), 2000, random);
  EXPECT_LT(bytes_each(tenth), 1.3);
  auto const mixed = [&] {  // of lists in which they were not neighbours
    std::vector<Key> keys;
    std::sample(spread.begin(), spread.end(), std::back_inserter(keys), 1000, random);
    auto const other = spread_keys(20000, 1000);
    keys.insert(keys.end(), other.begin(), other.end());
    std::sort(keys.begin(), keys.end());
    return keys;
  };
  bytes_each(mixed());
  EXPECT_LT(bytes_each(mixed()), 2.26);
}

TEST(KeyDictionary, CapacityZeroKeepsNoKeys) {
  Pair pair(0);
  std::vector<Key> const keys{Key{0}, Key{5}, Key{1ULL << 60}, Key{~0ULL}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pair.send(keys).fresh, 2U);
    EXPECT_EQ(pair.decoder.size(), 0U);
    EXPECT_EQ(pair.encoder.bytes() + pair.decoder.bytes(), 0U);
  }
}

// Many dictionaries, and several lists of one of them: threads do not change bytes.
TEST(KeyDictionary, ThreadsDoNotChangeBytes) {
  std::vector<std::vector<Bytes>> of_threads;
  for (int const threads : {1, 3}) {
    Stream stream(Device::host(), threads);
    std::vector<KeyEncoder> encoders(20, KeyEncoder(3000));
    std::vector<KeyDecoder> decoders(20, KeyDecoder(3000));
    auto& sent = of_threads.emplace_back();
    for (std::uint64_t step = 0; step < 8; ++step) {
      std::vector<std::vector<Key>> keys;
      for (std::uint64_t i = 0; i < 60; ++i) keys.push_back(spread_keys((step / 2 + i) * 1000, 40 * (i % 7)));
      std::vector<Bytes> wires(2);
      std::vector<KeyEncoder::List> lists;
      std::vector<KeyDecoder::List> received;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        bool const none = i % 21 == 20;
        lists.push_back({none ? nullptr : &encoders[i % 20], View<Key const>(keys[i]), &wires[i % 2]});
      }
      KeyEncoder::encode(stream, lists);
      for (std::size_t w = 0; w < 2; ++w) {
        std::vector<std::vector<Key>> want;
        received.clear();
        for (std::size_t i = w; i < keys.size(); i += 2) {
          received.push_back({i % 21 == 20 ? nullptr : &decoders[i % 20], keys[i].size()});
          want.push_back(keys[i]);
        }
        auto left = text(wires[w]);
        EXPECT_EQ(KeyDecoder::decode(stream, received, left), want);
        EXPECT_TRUE(left.empty());
      }
      sent.insert(sent.end(), wires.begin(), wires.end());
    }
  }
  EXPECT_EQ(of_threads[0], of_threads[1]);
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
  }
}

// Lists of encode_known() can be decoded at any time, and do not change slots.
TEST(KeyDictionary, EncodeKnownDoesNotChangeSlots) {
  std::mt19937_64 random(5);
  Pair pair(300), same(300);
  for (int i = 0; i < 60; ++i) {
    auto const named = some_keys(random, 90, 1500, false), listed = some_keys(random, 200, 1500, false);
    auto const sent = pair.send(named), again = same.send(named);
    EXPECT_EQ(sent.fresh, again.fresh);
    EXPECT_EQ(sent.bytes, again.bytes);
    Bytes wire;
    pair.encoder.encode_known(View<Key const>(listed), wire);
    auto left = text(wire);
    EXPECT_EQ(pair.decoder.decode_known(left, listed.size()), listed);
    EXPECT_TRUE(left.empty());
  }
}

// -- invalid lists --

void expect_rejected(Bytes const& bytes, std::uint64_t count, char const* words) {
  std::vector<Key> const dictionary{Key{9}, Key{4}};
  test::expect_error(
      [&] {
        auto wire = text(bytes);
        decode_keys(take_list(wire, count), count, View<Key const>(dictionary));
      },
      {words});
}

TEST(KeyDictionary, RejectsInvalidLists) {
  expect_rejected({}, 1, "a truncated list of keys");
  expect_rejected({64, 0, 0}, 1, "unknown coding");
  expect_rejected({0, 0}, 1, "fewer bytes than its keys need");
  expect_rejected({0, 1, 0}, 1, "fewer bytes than its keys need");                    // a gap of 2 bytes
  expect_rejected({8, 2, 0}, 1, "fewer bytes than its keys need");                    // a slot of 2 bytes
  expect_rejected({7, 3, 0, 0, 0, 0, 0, 0, 0}, 1, "fewer bytes than its keys need");  // a wide gap of 8 bytes
  expect_rejected({0, 0, 1, 1, 1, 1}, 5, "fewer bytes than its keys need");
  expect_rejected(Bytes(100, 0), std::uint64_t{1} << 40, "fewer bytes than its keys need");
  expect_rejected(Bytes(100, 0), ~std::uint64_t{0}, "fewer bytes than its keys need");
  expect_rejected({0, 2, 2}, 1, "a slot that has no key yet");
  expect_rejected({8, 2, 1, 1}, 1, "a slot that has no key yet");
  expect_rejected({24, 2, 255, 255, 255, 255}, 1, "a slot that has no key yet");
  expect_rejected({32, 0b0110, 1, 0}, 2, "a slot that has no key yet");  // after the last slot
  expect_rejected({0, 0b1010, 0, 1}, 2, "keys that are not ascending");
  expect_rejected({0, 0b1010, 1, 1}, 2, "keys that are not ascending");
  Bytes at_the_end(11, 0xFF);
  at_the_end[0] = 7;
  at_the_end[1] = 0b0011;
  at_the_end[10] = 0;
  expect_rejected(at_the_end, 2, "keys that are not ascending");
  at_the_end[1] = 0b1011;
  expect_rejected(at_the_end, 2, "keys that are not ascending");
}

// Any bytes are an ascending list with at most as many keys as bytes, or an error.
TEST(KeyDictionary, AnyBytesGiveListOrError) {
  std::mt19937_64 random(1);
  int lists = 0;
  for (int i = 0; i < 100000; ++i) {
    Bytes bytes(random() % 40);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 4);
    auto wire = text(bytes);
    std::vector<Key> const dictionary = spread_keys(0, random() % 300);
    std::uint64_t const count = random() % 12;
    try {
      auto const keys = decode_keys(take_list(wire, count), count, View<Key const>(dictionary)).keys;
      EXPECT_LE(keys.size(), bytes.size());
      EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
      ++lists;
    } catch (comm::SerializationError const&) {
    }
  }
  EXPECT_GT(lists, 100);
}

}  // namespace
}  // namespace gpups::cache::key_dictionary_test
