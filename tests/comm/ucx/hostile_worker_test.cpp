// SPDX-License-Identifier: Apache-2.0
// A peer that sends invalid messages over a link: each is a PeerError that names the rank, and none takes unbounded
// memory.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "comm/base/peer_error.hpp"
#include "comm/bulk/bulk_transport.hpp"
#include "comm/bulk/flow_control.hpp"
#include "comm/transport/transport.hpp"
#include "gpups/error.hpp"
#include "tests/support/bulk_routes.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_active_messages.hpp"

namespace gpups::comm::hostile_worker_test {
namespace {

constexpr Rank kPeer{1}, kOther{2};

void expect_peer_error(std::function<void()> const& call, char const* words) {
  try {
    call();
    ADD_FAILURE() << "no PeerError; expected one with: " << words;
  } catch (PeerError const& error) {
    EXPECT_EQ(error.peer(), kPeer);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

class HostileLink : public testing::Test {
 protected:
  void expect_lost(char const* words) {
    expect_peer_error(
        [this] {
          while (transport->receive()) {
          }
        },
        words);
  }
  void expect_wrong(char const* words) {
    expect_peer_error([this] { bulk->progress(); }, words);
  }
  std::shared_ptr<test::FakeActiveMessages> const messages = std::make_shared<test::FakeActiveMessages>(3);
  std::unique_ptr<Transport> transport = make_ucx_transport(messages, nullptr);
  std::unique_ptr<BulkTransport> bulk = make_ucx_bulk_transport(messages);
};

TEST_F(HostileLink, BoundsMemoryOfAnnouncedMessages) {
  for (int i = 0; i < 2; ++i) messages->deliver_remote_message(kPeer, kMessageBytesMax);
  EXPECT_EQ(messages->bytes_requested(), 2 * kMessageBytesMax);
  messages->deliver_remote_message(kPeer, 1);
  EXPECT_EQ(messages->bytes_requested(), 2 * kMessageBytesMax);
  messages->end_all();
  expect_lost("more than its credits allow");
}

TEST_F(HostileLink, FailedConnectionIsLoss) {
  messages->break_connection(kPeer);
  expect_peer_error(
      [this] {
        for (;;) transport->receive();
      },
      "its data connection failed: it broke");
}

TEST_F(HostileLink, ReasonOfPeerReplacesConnectionError) {
  messages->break_connection(kPeer);
  EXPECT_FALSE(transport->receive());
  messages->deliver(kPeer, AmKind::kEnd, number(kPeer), 0, "no memory");
  expect_lost("no memory");
}

TEST_F(HostileLink, RejectsTooLongMessage) {
  messages->deliver_remote_message(kPeer, ~std::size_t{0});
  EXPECT_EQ(messages->bytes_requested(), 0U);
  expect_lost("more than its credits allow");
}

TEST_F(HostileLink, BoundAppliesToEachRank) {
  for (int i = 0; i < 2; ++i) messages->deliver_remote_message(kPeer, kMessageBytesMax);
  messages->deliver_message(kOther, "x");
  EXPECT_EQ(transport->receive()->body, "x");
}

TEST_F(HostileLink, RejectsLargeControlMessages) {
  for (auto const kind : {AmKind::kCredit, AmKind::kCreditRequest, AmKind::kEnd}) {
    messages->deliver_remote(kPeer, kind, 1, 0, 100);
  }
  EXPECT_EQ(messages->bytes_requested(), 0U);
  expect_lost("an invalid message");
}

TEST_F(HostileLink, IgnoresMessagesInNameOfThisRank) {
  messages->deliver_message(Rank{0}, "x");
  messages->deliver(Rank{0}, AmKind::kEnd, 0, 0, "");
  EXPECT_FALSE(transport->receive());
  EXPECT_TRUE(transport->send(Rank{0}, "y"));
  EXPECT_EQ(transport->receive()->body, "y");
}

TEST_F(HostileLink, RejectsCreditForUnsentBytes) {
  transport->send(kPeer, "abc");
  messages->deliver(kPeer, AmKind::kCredit, 1, 4);
  expect_lost("returned credits for more than was sent");
}

TEST_F(HostileLink, RejectsLeaveOfAnotherRank) {
  messages->deliver(kPeer, AmKind::kEnd, number(kOther), 0, "");
  expect_lost("an invalid message");
}

TEST_F(HostileLink, RejectsFailureOfUnknownRank) {
  messages->deliver(kPeer, AmKind::kEnd, 3, 0, "why");
  expect_lost("an invalid message");
}

TEST_F(HostileLink, SanitizesReasonOfPeer) {
  messages->deliver(kPeer, AmKind::kEnd, number(kPeer), 0, "\033[2J" + std::string(60000, 'x'));
  try {
    transport->receive();
    ADD_FAILURE();
  } catch (PeerError const& error) {
    EXPECT_LT(std::string(error.what()).size(), kPeerTextBytesMax + 200);
    EXPECT_EQ(std::string(error.what()).find('\033'), std::string::npos);
  }
}

TEST_F(HostileLink, SendsOneCreditMessageAtATime) {
  for (int i = 0; i < 1000; ++i) {
    messages->deliver_message(kPeer, "x");
    ASSERT_TRUE(transport->receive());
    messages->deliver(kPeer, AmKind::kCreditRequest, 0, 0);
  }
  EXPECT_EQ(messages->in_flight(), 1U);
  messages->end_all();  // sends credit for all messages received meanwhile
  ASSERT_EQ(messages->sent.size(), 2U);
  EXPECT_EQ(messages->sent[0].number + messages->sent[1].number, 1000U);
}

TEST_F(HostileLink, PutsMessagesInOrder) {
  messages->deliver(kPeer, AmKind::kMessage, 2, 0, "c");
  messages->deliver(kPeer, AmKind::kMessage, 1, 0, "b");
  EXPECT_FALSE(transport->receive());
  messages->deliver(kPeer, AmKind::kMessage, 0, 0, "a");
  for (char const* const body : {"a", "b", "c"}) EXPECT_EQ(transport->receive()->body, body);
}

TEST_F(HostileLink, RejectsMessageReceivedTwice) {
  messages->deliver(kPeer, AmKind::kMessage, 0, 0, "a");
  ASSERT_TRUE(transport->receive());
  messages->deliver(kPeer, AmKind::kMessage, 0, 0, "a");
  expect_lost("sent a message twice");
}

TEST_F(HostileLink, RejectsDuplicateOfWaitingMessage) {
  for (int i = 0; i < 2; ++i) messages->deliver(kPeer, AmKind::kMessage, 1, 0, "b");
  expect_lost("sent a message twice");
}

TEST_F(HostileLink, RejectsTooLargeMessageNumber) {
  messages->deliver(kPeer, AmKind::kMessage, std::uint64_t{1} << 60, 0, "a");
  expect_lost("more than its credits allow");
}

TEST_F(HostileLink, ChangedDataEndsTransportAndBulk) {
  messages->change(kPeer);
  expect_lost("it was changed");
  expect_wrong("it was changed");
}

TEST_F(HostileLink, FetchMayOutliveTransport) {
  messages->deliver_remote_message(kPeer, 10);
  transport.reset();
  messages->end_all();
}

TEST_F(HostileLink, BoundsUnexpectedTransfers) {
  std::uint64_t tag = 0;
  for (; tag < 2 * kTransfersAheadMax; ++tag) messages->deliver_remote(kPeer, AmKind::kData, tag, 0, 100000);
  EXPECT_NO_THROW(bulk->progress());
  messages->deliver_remote(kPeer, AmKind::kData, tag, 0, 100000);
  expect_wrong("more than its credits allow");
}

TEST_F(HostileLink, BoundsUnexpectedBytes) {
  std::string const body(kEagerBytesMax, 'x');
  std::uint64_t const fit = 2 * kEagerBytesAheadMax / kEagerBytesMax;
  for (std::uint64_t tag = 0; tag < fit; ++tag) messages->deliver(kPeer, AmKind::kData, tag, 0, body);
  EXPECT_NO_THROW(bulk->progress());
  messages->deliver(kPeer, AmKind::kData, fit, 0, body);
  expect_wrong("more than its credits allow");
}

TEST_F(HostileLink, ReceivedAndWithdrawnDataFreeRoom) {
  Stream stream(Device::host(), 1);
  std::string into(100, ' ');
  for (std::uint64_t tag = 0; tag < 1U << 17; ++tag) {
    messages->deliver(kPeer, AmKind::kData, tag, 0, std::string(100, 'x'));
    if (tag % 2 == 0) {
      messages->deliver(kPeer, AmKind::kBulkWithdrawn, tag, 0);
    } else {
      ASSERT_TRUE(bulk->done(bulk->receive_into(stream, kPeer, tag, into.data(), into.size())));
    }
  }
  EXPECT_NO_THROW(bulk->progress());
}

// Transfers to a slow receiver: first eager, then by rendezvous, and then nothing more.
TEST_F(HostileLink, SendsNoMoreThanReceiverHasRoomFor) {
  Stream stream(Device::host(), 1);
  std::string const small(1000, 'x'), large(kEagerBytesMax, 'x');
  std::uint64_t tag = 0;
  std::size_t at_once = 0, sends = 0;
  auto const send = [&](std::string const& data) {
    bulk->send(stream, kPeer, tag++, data.data(), data.size());
    ++sends;
  };
  for (std::size_t i = 0; i < 2 * kEagerBytesAheadMax / large.size(); ++i) send(large);
  for (auto const& sent : messages->sent) at_once += sent.protocol == AmProtocol::kEager ? sent.bytes : 0;
  EXPECT_EQ(at_once, kEagerBytesAheadMax);
  while (messages->sent.size() == sends) send(small);
  EXPECT_EQ(messages->sent.size(), kTransfersAheadMax);

  // The receiver consumes some of the eager transfers, so there is room for as many.
  messages->deliver(kPeer, AmKind::kBulkCredit, 10, 10 * large.size());
  EXPECT_EQ(messages->sent.size(), kTransfersAheadMax + 1);
  for (int i = 0; i < 20; ++i) send(small);
  EXPECT_EQ(messages->sent.size(), kTransfersAheadMax + 10);
  EXPECT_EQ(messages->sent.back().protocol, AmProtocol::kEager);
}

TEST_F(HostileLink, RejectsBulkCreditForUnsentData) {
  messages->deliver(kPeer, AmKind::kBulkCredit, 1, 0);
  expect_wrong("returned credits for more than was sent");
}

TEST_F(HostileLink, SendsBulkCreditAfterReceiving) {
  Stream stream(Device::host(), 1);
  std::string into(kEagerBytesMax, ' ');
  std::size_t const worth = kEagerBytesAheadMax / 4 / into.size();
  for (std::uint64_t tag = 0; tag < worth; ++tag) {
    EXPECT_TRUE(messages->sent.empty());
    messages->deliver(kPeer, AmKind::kData, tag, 1, std::string(into.size(), 'x'));
    bulk->receive_into(stream, kPeer, tag, into.data(), into.size());
  }
  ASSERT_EQ(messages->sent.size(), 1U);
  EXPECT_EQ(messages->sent[0].kind, AmKind::kBulkCredit);
  EXPECT_EQ(messages->sent[0].number, worth);
  EXPECT_EQ(messages->sent[0].count, worth * into.size());
}

TEST_F(HostileLink, RejectsDuplicateData) {
  for (int i = 0; i < 2; ++i) messages->deliver_remote(kPeer, AmKind::kData, 7, 0, 100000);
  expect_wrong("the same data twice");
}

TEST_F(HostileLink, RejectsUnrequestedPiece) {
  messages->deliver_remote(kPeer, AmKind::kBulkPiece, 7, 0, 100);
  EXPECT_EQ(messages->bytes_requested(), 0U);
  expect_wrong("a piece that was not requested");
}

TEST_F(HostileLink, RejectsPieceOutOfRange) {
  constexpr std::uint64_t kSize = 200000;
  for (auto const& [offset, bytes] : {std::pair{kSize - 1, 2UL}, {~0UL, 1UL}, {0UL, kSize + 1}, {kSize, 0UL}}) {
    auto const other = std::make_shared<test::FakeActiveMessages>(3);
    auto const end = make_ucx_bulk_transport(other);
    Stream stream(Device::host(), 1);
    std::string into(kSize, ' ');
    end->receive_into(stream, kPeer, 7, into.data(), into.size());
    other->deliver(kPeer, AmKind::kBulkOffer, 7, kSize);
    ASSERT_EQ(other->sent.back().kind, AmKind::kBulkRequest);
    other->deliver_remote(kPeer, AmKind::kBulkPiece, 7, offset, bytes);
    EXPECT_EQ(other->bytes_requested(), 0U);
    expect_peer_error([&] { end->progress(); }, "a piece that was not requested");
  }
}

TEST_F(HostileLink, RejectsRequestWithoutOffer) {
  messages->deliver(kPeer, AmKind::kBulkRequest, 7, 0);
  expect_wrong("requested a transfer that was not announced");
}

TEST_F(HostileLink, RejectsUnknownTransferMode) {
  auto const other = std::make_shared<test::FakeActiveMessages>(3);
  auto const hub = std::make_shared<test::FabricHub>(3);
  auto const end = make_ucx_bulk_transport(other, std::make_shared<test::LocalFabric>(Rank{0}, hub));
  Stream stream(Device::host(), 1);
  std::string const data(200000, 'x');
  end->send(stream, kPeer, 7, data.data(), data.size());
  ASSERT_EQ(other->sent.back().kind, AmKind::kFabricOffer);
  other->deliver(kPeer, AmKind::kBulkRequest, 7, 2);
  EXPECT_EQ(other->sent.back().kind, AmKind::kFabricOffer);
  expect_peer_error([&] { end->progress(); }, "requested an unknown transfer mode");
}

TEST_F(HostileLink, RejectsBatchNotFromRankZero) {
  messages->deliver(kPeer, AmKind::kFabricBatch, 0, 0, std::string("\1\0\0\0\1\1\0\0\0\0\0\0\0\0\0\0\0", 17));
  expect_wrong("an invalid batch");
}

// Even a batch without transfers is rejected.
TEST_F(HostileLink, RejectsBatchWithoutFabric) {
  messages->deliver(Rank{0}, AmKind::kFabricBatch, 0, 0, std::string(4, '\0'));
  test::expect_error([this] { bulk->progress(); }, {"a batch for a device fabric that does not exist"});
}

TEST_F(HostileLink, RejectsReadyForUnknownRank) {
  messages->deliver(kPeer, AmKind::kFabricReady, 7, 3);
  expect_wrong("an invalid transfer for the device fabric");
}

TEST_F(HostileLink, RejectsSecondReadyForSum) {
  for (int i = 0; i < 2; ++i) messages->deliver(kPeer, AmKind::kFabricAllreduceReady, 7, 100);
  expect_wrong("allreduce differs from that of other ranks");
}

TEST_F(HostileLink, RejectsReadyForOtherSum) {
  messages->deliver(kOther, AmKind::kFabricAllreduceReady, 7, 100);
  messages->deliver(kPeer, AmKind::kFabricAllreduceReady, 7, 101);
  expect_wrong("allreduce differs from that of other ranks");
}

TEST_F(HostileLink, BoundsWaitingSums) {
  for (std::uint64_t tag = 0; tag < 1000000; ++tag) messages->deliver(kPeer, AmKind::kFabricAllreduceReady, tag, 100);
  expect_wrong("an invalid allreduce for the device fabric");
}

TEST_F(HostileLink, DoesNotFetchRejections) {
  messages->deliver_remote(kPeer, AmKind::kBulkRejected, 7, 0, ~std::size_t{0});
  messages->deliver_remote(kPeer, AmKind::kBulkWithdrawn, 7, 0, ~std::size_t{0});
  EXPECT_EQ(messages->bytes_requested(), 0U);
  expect_wrong("rank 1");
}

}  // namespace
}  // namespace gpups::comm::hostile_worker_test
