// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/message.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "comm/base/serialization.hpp"
#include "comm/progress/channel.hpp"
#include "tests/support/empty_messages.hpp"

namespace gpups::cache::message_test {
namespace {

// Returns one message of each layout, with all of its fields.
std::vector<Message> full() {
  std::vector<Intent> const intents{{Clock{81}, {{TableId{0}, 10}, {TableId{1}, 0}}}, {Clock{82}, {}}};
  std::vector<Forward> const forwards{{Rank{3}, RowRole::kMove, intents[0]}, {Rank{1}, RowRole::kRead, intents[1]}};
  Routes const routes{{{Clock{81}, {{true, false}, {false, true}}}, {Clock{82}, {}}}, 9};
  return {GradientPhase{.clock = Clock{77},
                        .report = {.samples = 4096, .signal = 3, .rejection = "why"},
                        .gradients = {{1000, 0}, {77, 3, 2}},
                        .flushed = {{TableId{1}, 4, 9, 80, true}, {TableId{0}, 1, 13, 20, false}},
                        .intents = {intents, 60},
                        .forwards = {forwards, 70},
                        .routes = routes},
          RefreshPhase{.clock = Clock{77}, .parts = 2, .sent = {3, 0}, .moved_sent = {4}},
          LateFetch{.id = 5, .intent = intents[0], .key_bytes = 60},
          LateForward{.id = 5, .forward_id = 6, .forward = forwards[0], .key_bytes = 60},
          LateFetchReply{.clock = Clock{77}, .id = 5, .sent = {3}, .routes = routes},
          GatherPart{.id = 5, .call = "size(table 't')", .bytes = std::string("a\0b", 3), .more = true},
          RowRequestHeader{.kind = RowRequestKind::kTake, .clock = Clock{77}, .id = 5, .table = TableId{1}, .keys = 12},
          RowReplyHeader{.kind = RowRequestKind::kTake, .id = 5},
          SchemaMessage{std::string("a\0b", 3)}};
}

std::string hex(std::string const& bytes) {
  std::string text;
  for (char const byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// The numbers are little-endian. Ranks of different versions exchange these bytes.
TEST(MessageCoding, BytesAreThoseOfTheProtocol) {
  std::vector<std::string> const expected{
      "004d00000000000000001000000000000003000000030000000000000077687902000000e803000000000000000000000000"
      "000000000000000000004d000000000000000300000000000000020000000000000002000000010000000400000000000000"
      "09000000000000005000000000000000010000000001000000000000000d0000000000000014000000000000000002000000"
      "510000000000000002000000000000000a000000000000000100000000000000000000005200000000000000000000003c00"
      "000000000000020000000300000003510000000000000002000000000000000a000000000000000100000000000000000000"
      "0001000000015200000000000000000000004600000000000000020000005100000000000000020000000100000152000000"
      "00000000000000000900000000000000",
      "014d0000000000000002000000000000000200000003000000000000000000000000000000010000000400000000000000",
      "025100000000000000050000000000000001000000510000000000000002000000000000000a000000000000000100000000"
      "000000000000003c00000000000000",
      "0c51000000000000000500000000000000060000000000000001000000030000000351000000000000000200000000000000"
      "0a000000000000000100000000000000000000003c00000000000000",
      "034d000000000000000500000000000000010000000300000000000000020000005100000000000000020000000100000152"
      "00000000000000000000000900000000000000",
      "0405000000000000000f0000000000000073697a65287461626c652027742729030000000000000061006201",
      "0d4d000000000000000500000000000000010000000c00000000000000",
      "0e0500000000000000",
      "0b0300000000000000610062"};
  auto const messages = full();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].index(), i);
    EXPECT_EQ(hex(encode(messages[i])), expected[i]);
  }
}

TEST(MessageCoding, KindsHaveTheNumbersOfTheProtocol) {
  auto const messages = test::empty_messages();
  EXPECT_EQ(messages.size(), 19U);
  for (std::size_t kind = 0; kind < messages.size(); ++kind) {
    EXPECT_EQ(static_cast<std::size_t>(encode(messages[kind])[0]), kind);
    EXPECT_EQ(decode(encode(messages[kind])), messages[kind]);
  }
}

TEST(MessageCoding, RoundTripKeepsTheFieldsOfEachLayout) {
  for (auto const& message : full()) EXPECT_EQ(decode(encode(message)), message);
}

TEST(MessageCoding, RejectsTruncatedMessages) {
  for (auto const& message : full()) {
    auto const bytes = encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_THROW(decode(bytes.substr(0, length)), comm::SerializationError) << length;
    }
    EXPECT_THROW(decode(bytes + "x"), comm::SerializationError);
  }
}

TEST(MessageCoding, RejectsUnknownKind) {
  EXPECT_THROW(decode(std::string(1, static_cast<char>(200))), comm::SerializationError);
}

// Each message has exactly one encoding, so a flag has only two valid values.
TEST(MessageCoding, RejectsInvalidFlag) {
  auto exact = encode(GradientPhase{.flushed = {{TableId{0}, 1, 13, 20, true}}});
  auto const coded = encode(GradientPhase{.flushed = {{TableId{0}, 1, 13, 20, false}}});
  auto const at =
      static_cast<std::size_t>(std::mismatch(exact.begin(), exact.end(), coded.begin()).first - exact.begin());
  exact[at] = 2;
  EXPECT_THROW(decode(exact), comm::SerializationError);
}

TEST(MessageCoding, RejectsRoleThatDoesNotExist) {
  auto const encoded = [](RowRole role) { return encode(LateForward{.forward = {Rank{3}, role, {}}}); };
  EXPECT_EQ(std::get<LateForward>(decode(encoded(RowRole::kMove))).forward.role, RowRole::kMove);
  EXPECT_THROW(decode(encoded(static_cast<RowRole>(4))), comm::SerializationError);
}

// The step of a late fetch is sent twice, and its batch as a list of one.
TEST(MessageCoding, RejectsLateFetchThatIsNotOfOneBatchAndStep) {
  for (Message const& message : {Message(LateFetch{}), Message(LateForward{})}) {
    auto const bytes = encode(message);
    std::size_t const count = std::holds_alternative<LateFetch>(message) ? 17 : 25;
    for (std::size_t const at : {std::size_t{1}, count}) {
      auto changed = bytes;
      changed[at] = static_cast<char>(changed[at] + 1);
      EXPECT_THROW(decode(changed), comm::SerializationError) << at;
    }
  }
}

TEST(MessageCoding, ChangedBytesGiveMessageOrError) {
  std::mt19937_64 random(1);
  auto const messages = full();
  int rejected = 0;
  for (std::size_t i = 0; i < 20000; ++i) {
    auto changed = encode(messages[i % messages.size()]);
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    try {
      decode(changed);
    } catch (comm::SerializationError const&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 0);
}

TEST(Tags, DifferBySectionNumberAndPart) {
  EXPECT_NE(tag(Section::kGradients, 1, 0), tag(Section::kGradients, 1, 1));
  EXPECT_NE(tag(Section::kGradients, 1, 0), tag(Section::kGradients, 2, 0));
  EXPECT_NE(tag(Section::kGradients, 1, 0), tag(Section::kValues, 1, 0));
  EXPECT_EQ(tag(Section::kRequestWords, ~0ULL, ~0ULL) >> comm::kTagBits, 0U);
  EXPECT_EQ(section_of(tag(Section::kRequestWords, ~0ULL, ~0ULL)), Section::kRequestWords);
}

}  // namespace
}  // namespace gpups::cache::message_test
