// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/message.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "comm/base/serialization.hpp"
#include "comm/progress/channel.hpp"

namespace gpups::cache::message_test {
namespace {

// Returns one message of each layout, with all of its fields.
std::vector<Message> full() {
  std::vector<Intent> const intents{{Clock{81}, {{TableId{0}, 10}, {TableId{1}, 0}}}, {Clock{82}, {}}};
  std::vector<Forward> const forwards{{Rank{3}, RowRole::kMove, intents[0]}, {Rank{1}, RowRole::kRead, intents[1]}};
  std::vector<Route> const routes{{Clock{81}, {{true, false}, {false, true}}}, {Clock{82}, {}}};
  return {{.kind = MessageKind::kGradientPhase,
           .clock = Clock{77},
           .samples = 4096,
           .signal = 3,
           .error = "why",
           .gradients = {{1000, 0}, {77, 3, 2}},
           .flushed = {{TableId{1}, 4, 9, 80, true}, {TableId{0}, 1, 13, 20, false}},
           .intents = intents,
           .forwards = forwards,
           .key_bytes = 60,
           .forward_bytes = 70,
           .routes = routes,
           .route_bytes = 9},
          {.kind = MessageKind::kRefreshPhase, .clock = Clock{77}, .parts = 2, .sent = {3, 0}, .moved_sent = {4}},
          {.kind = MessageKind::kLateFetch, .clock = Clock{77}, .id = 5, .intents = intents, .key_bytes = 60},
          {.kind = MessageKind::kLateForward,
           .clock = Clock{77},
           .id = 5,
           .forward_id = 6,
           .forwards = forwards,
           .forward_bytes = 60},
          {.kind = MessageKind::kLateFetchReply,
           .clock = Clock{77},
           .id = 5,
           .sent = {3},
           .routes = routes,
           .route_bytes = 9},
          {.kind = MessageKind::kGather, .id = 5, .bytes = std::string("a\0b", 3), .call = "size(table 't')"},
          {.kind = MessageKind::kTake, .clock = Clock{77}, .id = 5, .table = TableId{1}, .keys = 12},
          {.kind = MessageKind::kTakeReply, .id = 5},
          {.kind = MessageKind::kSchema, .bytes = std::string("a\0b", 3)}};
}

TEST(MessageCoding, RoundTripKeepsTheFieldsOfEachKind) {
  for (auto const& message : full()) {
    EXPECT_EQ(decode(encode(message)), message);
    EXPECT_EQ(decode(encode({.kind = message.kind})), Message{.kind = message.kind});
  }
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
  auto exact = encode({.flushed = {{TableId{0}, 1, 13, 20, true}}});
  auto const coded = encode({.flushed = {{TableId{0}, 1, 13, 20, false}}});
  auto const at =
      static_cast<std::size_t>(std::mismatch(exact.begin(), exact.end(), coded.begin()).first - exact.begin());
  exact[at] = 2;
  EXPECT_THROW(decode(exact), comm::SerializationError);
}

TEST(MessageCoding, RejectsRoleThatDoesNotExist) {
  auto const encoded = [](RowRole role) {
    return encode({.kind = MessageKind::kLateForward, .forwards = {{Rank{3}, role, {}}}});
  };
  EXPECT_EQ(decode(encoded(RowRole::kMove)).forwards[0].role, RowRole::kMove);
  EXPECT_THROW(decode(encoded(static_cast<RowRole>(4))), comm::SerializationError);
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
