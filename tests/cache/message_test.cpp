// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/message.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "comm/progress/channel.hpp"
#include "comm/wire.hpp"

namespace gpups::cache {
namespace {

Message full() {
  return {.kind = MessageKind::kGradientPhase,
          .clock = Clock{77},
          .id = 5,
          .samples = 4096,
          .signal = 3,
          .error = "why",
          .parts = 2,
          .gradients = {{1000, 0}, {77, 3, 2}},
          .flushed = {{TableId{1}, 4, 9, 80, true}, {TableId{0}, 1, 13, 20, false}},
          .sent = {3, 0},
          .intents = {{Clock{81}, {{TableId{0}, 10}, {TableId{1}, 0}}}, {Clock{82}, {}}},
          .key_bytes = 60,
          .table = TableId{1},
          .keys = 12,
          .bytes = std::string("a\0b", 3)};
}

TEST(MessageCoding, RoundTripKeepsAllFields) {
  EXPECT_EQ(decode(encode(full())), full());
  EXPECT_EQ(decode(encode(Message{})), Message{});
}

TEST(MessageCoding, RejectsTruncatedMessages) {
  auto const bytes = encode(full());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(decode(bytes.substr(0, length)), comm::WireError) << length;
  }
  EXPECT_THROW(decode(bytes + "x"), comm::WireError);
}

// Each message has exactly one encoding, so a flag has only two valid values.
TEST(MessageCoding, RejectsInvalidFlag) {
  auto exact = encode({.flushed = {{TableId{0}, 1, 13, 20, true}}});
  auto const coded = encode({.flushed = {{TableId{0}, 1, 13, 20, false}}});
  auto const at =
      static_cast<std::size_t>(std::mismatch(exact.begin(), exact.end(), coded.begin()).first - exact.begin());
  exact[at] = 2;
  EXPECT_THROW(decode(exact), comm::WireError);
}

TEST(MessageCoding, ChangedBytesGiveMessageOrError) {
  std::mt19937_64 random(1);
  auto const bytes = encode(full());
  int rejected = 0;
  for (int i = 0; i < 20000; ++i) {
    auto changed = bytes;
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    try {
      decode(changed);
    } catch (comm::WireError const&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 0);
}

TEST(Tags, DifferBySectionNumberAndPart) {
  EXPECT_NE(tag(Section::kGradients, 1, 0), tag(Section::kGradients, 1, 1));
  EXPECT_NE(tag(Section::kGradients, 1, 0), tag(Section::kGradients, 2, 0));
  EXPECT_NE(tag(Section::kGradients, 1, 0), tag(Section::kValues, 1, 0));
  EXPECT_EQ(tag(Section::kOccurrences, ~0ULL, ~0ULL) >> comm::kTagBits, 0U);
  EXPECT_EQ(section_of(tag(Section::kOccurrences, ~0ULL, ~0ULL)), Section::kOccurrences);
}

}  // namespace
}  // namespace gpups::cache
