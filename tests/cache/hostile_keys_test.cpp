// SPDX-License-Identifier: Apache-2.0
// A peer that sends invalid lists of keys or invalid gradients: unknown slots, duplicate keys, impossible sizes.
#include <cstring>
#include <numeric>

#include "tests/support/hostile_peer.hpp"

namespace gpups::test::hostile_keys_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

class HostileKeys : public HostilePeer {
 protected:
  // The peer announces `keys` keys for step 1, encoded in `bytes`, and step 0 ends.
  void announce(std::uint64_t keys, Bytes const& bytes) {
    peer_.send(in(0, {intent(1, keys)}, bytes.size()));
    if (!bytes.empty()) peer_.send_data(tag(Section::kKeys, 0, 0), bytes);
    end_step();
  }
  void expect_keys_rejected(std::uint64_t keys, Bytes const& bytes, char const* words) {
    announce(keys, bytes);
    expect_rejected(words);
  }
  // The peer announces `keys` new keys, and step 1 begins. Returns the header of its gradients, without their sizes.
  GradientPhase step_with_known_keys(std::uint64_t keys) {
    std::vector<std::uint64_t> list;
    for (std::uint64_t k = 0; k < keys; ++k) list.push_back(k << 33);
    announce(keys, new_keys(list));
    peer_.receive_data(tag(Section::kValues, 1, 0), 16 * keys);
    peer_.send(RefreshPhase{.clock = Clock{0}});
    EXPECT_EQ(progress(), "");
    end_step();
    return in(1);
  }
};

TEST_F(HostileKeys, RejectsUnknownSlot) { expect_keys_rejected(1, {0, 2, 0}, "a slot that has no key yet"); }

TEST_F(HostileKeys, RejectsSlotBeyondLast) {
  auto message = step_with_known_keys(3);
  message.gradients = {{2, 0}};
  Bytes const bytes{0, 0b1010, 1, 3};  // slots 1 and 3
  message.intents = {{intent(2, 2)}, bytes.size()};
  peer_.send(message);
  peer_.send_data(tag(Section::kGradients, 1, 0), 2);
  peer_.send_data(tag(Section::kKeys, 1, 0), bytes);
  expect_rejected("a slot that has no key yet");
}

TEST_F(HostileKeys, RejectsUnknownSlotInLateFetch) {
  auto message = step_with_known_keys(3);
  message.gradients = {{2, 0}};
  peer_.send(message);
  peer_.send_data(tag(Section::kGradients, 1, 0), 2);
  auto late = late_fetch(2, 1, 3);
  peer_.send(late);
  peer_.send_data(tag(Section::kLateFetchKeys, 2, 0), Bytes{0, 2, 0});
  expect_rejected("a slot that has no key yet");
}

TEST_F(HostileKeys, RejectsSlotSentTwice) {
  auto message = step_with_known_keys(3);
  message.gradients = {{2, 0}};
  Bytes const bytes{0, 0b1010, 1, 1};
  message.intents = {{intent(2, 2)}, bytes.size()};
  peer_.send(message);
  peer_.send_data(tag(Section::kGradients, 1, 0), 2);
  peer_.send_data(tag(Section::kKeys, 1, 0), bytes);
  expect_rejected("announced keys that are not ascending");
}

TEST_F(HostileKeys, RejectsKeysAfterLargest) {
  auto bytes = new_keys({~std::uint64_t{0}});
  bytes.push_back(0);  // another key, with a gap of 0
  expect_keys_rejected(2, bytes, "announced keys that are not ascending");
}

TEST_F(HostileKeys, RejectsUnknownCoding) { expect_keys_rejected(1, {255, 0, 0}, "unknown coding"); }

TEST_F(HostileKeys, RejectsMissingKeyBytes) { expect_keys_rejected(1, {}, "a truncated list of keys"); }

TEST_F(HostileKeys, RejectsMoreKeysThanBytes) {
  expect_keys_rejected(kHuge, Bytes(100, 0), "fewer bytes than its keys need");
}

TEST_F(HostileKeys, RejectsMoreBytesThanKeys) {
  auto bytes = new_keys({5});
  bytes.push_back(0);
  expect_keys_rejected(1, bytes, "more bytes than the keys of its batches need");
}

TEST_F(HostileKeys, RejectsKeyBytesBeyondMaximum) {
  peer_.send(in(0, {intent(1, 1)}, 1000));
  end_step();
  expect_rejected("more bytes of keys than its batches can need");
}

// The peer sends the schema that it gets, which says that keys are plain.
class HostilePlainKeys : public HostileKeys {
 protected:
  void SetUp() override {
    EXPECT_EQ(progress(), "");
    auto const schema = peer_.receive();
    ASSERT_TRUE(schema && std::get<SchemaMessage>(*schema).bytes.back() == 1);
    peer_.send(*schema);
  }
  static Bytes plain(std::vector<std::uint64_t> const& keys) {
    Bytes bytes(keys.size() * sizeof(Key));
    std::memcpy(bytes.data(), keys.data(), bytes.size());
    return bytes;
  }
};

TEST_F(HostilePlainKeys, AcceptsKeys) {
  announce(3, plain({7, 9, ~0ULL}));
  peer_.receive_data(tag(Section::kValues, 1, 0), 16 * 3);
  peer_.send(RefreshPhase{.clock = Clock{0}});
  EXPECT_EQ(progress(), "");
}

TEST_F(HostilePlainKeys, RejectsDuplicateKey) {
  expect_keys_rejected(3, plain({5, 6, 5}), "announced key 5 of table 't' twice");
}

TEST_F(HostilePlainKeys, RejectsOtherBytesThanItsKeysNeed) {
  expect_keys_rejected(2, plain({5}), "announced keys of another size than their number needs");
}

TEST_F(HostilePlainKeys, RejectsMoreBytesThanItsKeysNeed) {
  std::vector<std::uint64_t> keys(40);  // encoded, 39 keys can need as many bytes
  std::iota(keys.begin(), keys.end(), 5);
  expect_keys_rejected(39, plain(keys), "announced keys of another size than their number needs");
}

TEST_F(HostilePlainKeys, RejectsPartOfAKey) {
  auto bytes = plain({5, 6});
  bytes.resize(9);
  expect_keys_rejected(1, bytes, "announced keys of another size than their number needs");
}

TEST_F(HostilePlainKeys, RejectsManyKeysWithFewBytes) {
  expect_keys_rejected(kHuge, Bytes(16, 0), "announced keys of another size than their number needs");
}

TEST_F(HostilePlainKeys, RejectsMoreKeysThanItSends) {
  peer_.send(in(0, {intent(1, kHuge)}, kHuge * sizeof(Key)));
  peer_.send_data(tag(Section::kKeys, 0, 0), plain({5}));
  end_step();
  expect_rejected("sends 8 bytes to rank 0");
}

class HostileSizes : public HostileKeys, public testing::WithParamInterface<cache::GradientBytes> {};

TEST_P(HostileSizes, RejectsImpossibleGradientSizes) {
  // Three rows of four columns take 2 to 98 bytes. This table counts no occurrences.
  auto message = step_with_known_keys(3);
  message.gradients = {GetParam()};
  peer_.send(message);
  expect_rejected("whose size is impossible for the rows of its batch");
}
INSTANTIATE_TEST_SUITE_P(Sizes, HostileSizes,
                         testing::Values(cache::GradientBytes{1, 0}, cache::GradientBytes{99, 0},
                                         cache::GradientBytes{~0ULL, 0}, cache::GradientBytes{2, 1}));

TEST_F(HostileKeys, RejectsRowsOfWrongLength) {
  auto message = step_with_known_keys(3);
  message.gradients = {{30, 0}};
  peer_.send(message);
  peer_.send_data(tag(Section::kGradientBody, 1, 0), 30, 0x11);  // three rows with sums of a byte take 2 + 12
  expect_rejected("whose rows do not fill their bytes");
}

}  // namespace
}  // namespace gpups::test::hostile_keys_test
