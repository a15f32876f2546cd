// SPDX-License-Identifier: Apache-2.0
// A peer that sends invalid headers or data for allreduces.
#include <fmt/core.h>

#include "comm/collectives/collective_channel.hpp"
#include "comm/collectives/collective_header.hpp"
#include "comm/collectives/collective_op.hpp"
#include "tests/support/hostile_peer.hpp"

namespace gpups::test::hostile_allreduce_test {
namespace {

struct OpMessage {
  std::uint64_t sequence_number;
  comm::CollectiveHeader header;
};
comm::Signature sum_of(std::uint64_t elements) {
  return {.operation = comm::CollectiveKind::kSumIntegers, .elements = elements};
}
OpMessage sum_of(std::uint64_t sequence_number, std::uint64_t elements) {
  return {sequence_number, {.signature = sum_of(elements)}};
}

// A message of collective 0 inside its header, and a message whose data follow as bulk data.
OpMessage message_of(std::uint64_t index, std::string const& bytes) {
  return {0, {.message = comm::CollectiveHeader::MessagePart{.index = index, .size = bytes.size(), .bytes = bytes}}};
}
OpMessage bulk_of(std::uint64_t index, std::uint64_t size) {
  return {0, {.message = comm::CollectiveHeader::MessagePart{.index = index, .size = size}}};
}
// Packed integers of one byte each, all equal; by default as many as a slice of two ranks has.
constexpr std::size_t kSlice = 512;
constexpr std::uint64_t kWords = 2 * kSlice;
std::string packed(char word, std::size_t words = kSlice) {
  std::string bytes(8, '\0');
  bytes[0] = 1;
  return bytes + std::string(words, word);
}

class HostileAllreduce : public HostilePeer {
 protected:
  static void send(RawPeer& peer, OpMessage const& message) { peer.send(message.sequence_number, message.header); }
  // Sums so many integers on this rank and returns the error. The second half is the peer's slice.
  std::string sum(std::size_t words = kWords) {
    values_.assign(words, 1);
    return error_of([&] { group_.wait_allreduce(*stream_, group_.begin_allreduce(*stream_, values_)); });
  }
  void expect_sum_rejected(char const* words) {
    auto const text = sum();
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: '" << text << "'";
  }

  std::vector<std::int64_t> values_;
};

TEST_F(HostileAllreduce, AcceptsCorrectPeer) {
  send(peer_, sum_of(0, kWords));
  send(peer_, message_of(0, packed(10)));
  send(peer_, message_of(1, packed(22)));
  EXPECT_EQ(sum(), "");
  EXPECT_EQ(values_[0], 11);
  EXPECT_EQ(values_[kSlice], 22);
}

// A short array is sent in one message.
TEST_F(HostileAllreduce, AcceptsCorrectPeerOfShortSum) {
  send(peer_, sum_of(0, 3));
  send(peer_, message_of(0, packed(10, 3)));
  EXPECT_EQ(sum(3), "");
  EXPECT_EQ(values_, (std::vector<std::int64_t>{11, 11, 11}));
}

TEST_F(HostileAllreduce, RejectsShortSumInTwoMessages) {
  send(peer_, sum_of(0, 3));
  send(peer_, message_of(0, packed(10, 3)));
  send(peer_, message_of(1, packed(10, 3)));
  EXPECT_EQ(progress(), "");
  EXPECT_NE(sum(3).find("sent more messages of allreduce 0 than are due"), std::string::npos);
}

// A short array of floats is sent in one message, whose size both ranks know.
TEST_F(HostileAllreduce, RejectsShortArrayOfWrongSize) {
  comm::Signature const floats{.operation = comm::CollectiveKind::kSumFloats, .elements = 3, .how = "auto in float"};
  for (std::size_t const bytes : {0, 8, 12, 16}) {
    RawPeer peer;
    auto const group = peer.group();
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    std::string const zeros(bytes, '\0');
    peer.send(0, {.signature = floats, .message = comm::CollectiveHeader::MessagePart{.size = bytes, .bytes = zeros}});
    std::vector<float> values{1, 2, 3};
    auto const error = error_of([&] { group.wait_allreduce(stream, group.begin_allreduce(stream, values)); });
    if (bytes == 12) {
      EXPECT_EQ(error, "");
      EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
    } else {
      auto const words =
          fmt::format("sent message 0 of allreduce 0 with {} bytes, where message 0 with 12 bytes is due", bytes);
      EXPECT_NE(error.find(words), std::string::npos) << error;
    }
  }
}

TEST_F(HostileAllreduce, AnnouncedSumTakesNoMemory) {
  send(peer_, sum_of(0, comm::kSumElementsMax));
  EXPECT_EQ(progress(), "");
}

TEST_F(HostileAllreduce, RejectsTooManySumsAhead) {
  for (std::uint64_t id = 0; id < Group::kAllreducesMax; ++id) send(peer_, sum_of(id, 1));
  EXPECT_EQ(progress(), "");
  send(peer_, sum_of(Group::kAllreducesMax, 1));
  expect_rejected("started allreduce 64 too early or out of order: its next one is 64, and 0 is the next of rank 0");
}

TEST_F(HostileAllreduce, RejectsDuplicateSum) {
  for (int i = 0; i < 2; ++i) send(peer_, sum_of(0, kWords));
  expect_rejected("started allreduce 0 too early or out of order: its next one is 1");
}

TEST_F(HostileAllreduce, RejectsSumOutOfOrder) {
  send(peer_, sum_of(1, 3));
  expect_rejected("started allreduce 1 too early or out of order: its next one is 0");
}

TEST_F(HostileAllreduce, RejectsOtherSizeBeforeStart) {
  send(peer_, sum_of(0, 4));
  expect_sum_rejected("sums 4 integers in allreduce 0 where rank 0 sums 1024");
}

TEST_F(HostileAllreduce, RejectsOtherSizeAfterStart) {
  peer_.on_idle = [this] {
    send(peer_, sum_of(0, comm::kSumElementsMax));
    peer_.on_idle = [] { return false; };
    return true;
  };
  expect_sum_rejected("sums 4294967296 integers in allreduce 0 where rank 0 sums 1024");
}

TEST_F(HostileAllreduce, RejectsTooManyElements) {
  send(peer_, sum_of(0, comm::kSumElementsMax + 1));
  expect_rejected("more than 2^32 elements");
}

TEST_F(HostileAllreduce, RejectsHeaderInStoreMessage) {
  peer_.send_bytes(cache::encode(RowRequestHeader{.kind = RowRequestKind::kLookup}) + encode(sum_of(0, 3).header));
  expect_rejected("sent an invalid message");
}

TEST_F(HostileAllreduce, RejectsBytesThatAreNoMessage) {
  peer_.send_on(ChannelId::kCollectives, "abc");
  expect_rejected("sent an invalid message");
}

TEST_F(HostileAllreduce, RejectsMessageBeforeAnnouncement) {
  send(peer_, message_of(0, packed(10)));
  expect_rejected("sent a message of allreduce 0 too early or out of order: its next one is 0");
}

TEST_F(HostileAllreduce, RejectsMessageAfterEnd) {
  send(peer_, sum_of(0, kWords));
  send(peer_, message_of(0, packed(10)));
  send(peer_, message_of(1, packed(22)));
  EXPECT_EQ(sum(), "");
  send(peer_, message_of(2, packed(1)));
  expect_rejected("sent a message of allreduce 0 too early or out of order: its next one is 1");
}

TEST_F(HostileAllreduce, RejectsTooManyMessages) {
  send(peer_, sum_of(0, kWords));
  send(peer_, message_of(0, packed(10)));
  send(peer_, message_of(1, packed(22)));
  send(peer_, message_of(2, packed(1)));
  EXPECT_EQ(progress(), "");
  expect_sum_rejected("sent more messages of allreduce 0 than are due");
}

TEST_F(HostileAllreduce, RejectsTooManyWaitingMessages) {
  send(peer_, sum_of(0, kWords));
  EXPECT_EQ(progress(), "");
  for (std::uint64_t i = 0; i <= comm::kUnexpectedMax; ++i) {
    send(peer_, message_of(i, "x"));
    peer_.progress_rank_0();
  }
  expect_rejected("where 1024 is due, and 1024 messages of it are unread");
}

TEST_F(HostileAllreduce, RejectsDuplicateMessage) {
  send(peer_, sum_of(0, kWords));
  for (int i = 0; i < 2; ++i) send(peer_, message_of(0, packed(10)));
  expect_rejected("sent message 0 of allreduce 0 where 1 is due");
}

TEST_F(HostileAllreduce, RejectsWrongMessageIndex) {
  send(peer_, sum_of(0, kWords));
  send(peer_, message_of(1, packed(10)));
  expect_sum_rejected("sent message 1 of allreduce 0 with 520 bytes, where message 0 with at most 4104 bytes is due");
}

TEST_F(HostileAllreduce, RejectsTooManyBytes) {
  send(peer_, sum_of(0, kWords));
  send(peer_, bulk_of(0, std::uint64_t{1} << 60));
  expect_sum_rejected("with 1152921504606846976 bytes, where message 0 with at most 4104 bytes is due");
}

TEST_F(HostileAllreduce, RejectsBulkDataOfWrongSize) {
  send(peer_, sum_of(0, kWords));
  send(peer_, bulk_of(0, 16));
  peer_.send_data(comm::collective_tag(0, 0), 800, 0, ChannelId::kCollectives);
  expect_sum_rejected("sends 800 bytes");
}

TEST_F(HostileAllreduce, RejectsDuplicateBulkData) {
  for (int i = 0; i < 2; ++i) peer_.send_words(comm::collective_tag(0, 0), {10}, ChannelId::kCollectives);
  expect_sum_rejected("two transfers under one tag");
}

TEST_F(HostileAllreduce, RejectsMissingWidths) {
  send(peer_, sum_of(0, kWords));
  send(peer_, message_of(0, "1234567"));
  expect_sum_rejected("sent packed integers without their widths");
}

TEST_F(HostileAllreduce, RejectsImpossibleWidths) {
  for (char const width : {0, 2, 9, -1}) {
    auto text = packed(10);
    text[0] = width;
    RawPeer peer;
    auto const group = peer.group();
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    send(peer, sum_of(0, kWords));
    send(peer, message_of(0, text));
    std::vector<std::int64_t> values(kWords, 1);
    auto const error = error_of([&] { group.wait_allreduce(stream, group.begin_allreduce(stream, values)); });
    EXPECT_NE(error.find("sent packed integers with invalid widths"), std::string::npos) << error;
  }
}

TEST_F(HostileAllreduce, RejectsTruncatedHeaders) {
  auto const good = encode(comm::CollectiveHeader{
      .signature = sum_of(3), .message = comm::CollectiveHeader::MessagePart{.size = 2, .bytes = "ab"}});
  for (std::size_t length = 0; length < good.size(); ++length) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    table_ = store.add_table({.name = "t", .dim = 4});
    peer.send_header(0, good.substr(0, length));
    EXPECT_NE(progress(store).find("sent an invalid header of a collective"), std::string::npos) << length;
  }
}

TEST_F(HostileAllreduce, ErrorNamesSilentPeer) {
  expect_sum_rejected("rank 0 waited for the sums of allreduce 0 from rank 1");
}

TEST_F(HostileAllreduce, ErrorNamesPeerThatStops) {
  send(peer_, sum_of(0, kWords));
  send(peer_, message_of(0, packed(10)));
  expect_sum_rejected("rank 0 waited for the sums of allreduce 0 from rank 1");
}

}  // namespace
}  // namespace gpups::test::hostile_allreduce_test
