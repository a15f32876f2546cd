// SPDX-License-Identifier: Apache-2.0
// A peer that sends invalid headers, or invalid messages in the round.
#include "tests/support/hostile_peer.hpp"

#include <fmt/core.h>

#include "comm/base/peer_error.hpp"

namespace gpups::test::hostile_peer_test {
namespace {

// -- sizes and fields --

TEST_F(HostilePeer, AnnouncedKeysTakeNoMemory) {
  peer_.send(late_fetch(0, kHuge, 8 * kHuge));
  EXPECT_EQ(progress(), "");
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .id = 1, .keys = kHuge});
  EXPECT_EQ(progress(), "");
}

TEST_F(HostilePeer, RejectsLateFetchOfWrongSize) {
  peer_.send(late_fetch(0, kHuge, 8 * kHuge));
  peer_.send_data(tag(Section::kLateFetchKeys, 0, 0), 80);
  expect_rejected("sends 80 bytes");
}

TEST_F(HostilePeer, RejectsLookupOfWrongSize) {
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .id = 1, .keys = kHuge});
  peer_.send_data(tag(Section::kRequestKeys, 1, 1), 80);
  expect_rejected("sends 80 bytes");
}

TEST_F(HostilePeer, RejectsTooManyKeys) {
  for (std::uint64_t const keys : {kHuge + 1, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    peer.send(late_fetch(0, keys));
    EXPECT_NE(progress(store).find("too many keys"), std::string::npos) << keys;
  }
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .keys = kHuge + 1});
  expect_rejected("too many keys");
}

TEST_F(HostilePeer, RejectsLookupOfUnknownTable) {
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .table = TableId{7}, .keys = 1});
  expect_rejected("a table that does not exist");
}

TEST_F(HostilePeer, RejectsLookupOfNoRows) {
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .keys = 0});
  expect_rejected("sent a request for no rows");
}

TEST_F(HostilePeer, RejectsTooManyPartsInBatch) {
  Intent many{Clock{1}, {}};
  for (std::size_t p = 0; p <= cache::kPartsMax; ++p) many.parts.push_back({TableId{0}, 1});
  peer_.send(in(0, {many}));
  expect_rejected("too many parts");
}

TEST_F(HostilePeer, RejectsBytesThatAreNoMessage) {
  peer_.send_bytes("hello");
  expect_rejected("an invalid message");
}

// -- the round --

TEST_F(HostilePeer, RejectsClocksOutOfRange) {
  for (std::int64_t const clock : {kFirst, std::int64_t{-1}, std::int64_t{1}, kLast - 1, kLast}) {
    for (Message const& message :
         {Message(GradientPhase{.clock = Clock{clock}}), Message(RefreshPhase{.clock = Clock{clock}}),
          Message(LateFetch{.intent = intent(clock, 1)}), Message(LateFetchReply{.clock = Clock{clock}})}) {
      RawPeer peer;
      Store store(peer.group(), {.threads = 1});
      store.add_table({.name = "t", .dim = 4});
      if (std::holds_alternative<LateFetch>(message) && clock == 1) continue;  // is valid
      peer.send(message);
      EXPECT_NE(progress(store), "") << clock << ", layout " << message.index();
    }
  }
}

TEST_F(HostilePeer, RejectsBatchesTooEarlyOrTooLate) {
  for (std::int64_t const clock : {kFirst, std::int64_t{0}, cache::kStepsAheadMax + 1, kLast}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    peer.send(in(0, {intent(clock, 1)}));
    store.advance_clock();
    EXPECT_NE(progress(store).find("announced a batch of step"), std::string::npos) << clock;
  }
}

TEST_F(HostilePeer, RejectsBatchAnnouncedTwice) {
  end_step();
  peer_.send(in(0, {intent(1, 1), intent(1, 1)}));
  expect_rejected("announced a batch twice");
}

TEST_F(HostilePeer, RejectsBatchOfUnknownTable) {
  end_step();
  peer_.send(in(0, {intent(1, 1, TableId{9})}));
  expect_rejected("a table that does not exist");
}

TEST_F(HostilePeer, RejectsTooManyPartsAhead) {
  end_step();
  std::vector<Intent> intents;
  for (std::int64_t clock = 1; clock <= 257; ++clock) {
    intents.push_back({Clock{clock}, std::vector(cache::kPartsMax, cache::IntentPart{TableId{0}, 0})});
  }
  peer_.send(in(0, intents));
  expect_rejected("parts of batches ahead");
}

TEST_F(HostilePeer, RejectsUnannouncedGradients) {
  end_step();
  auto message = in(0);
  message.gradients = {{5, 0}};
  peer_.send(message);
  expect_rejected("gradients for rows that it did not announce");
}

// Any counts of entries are accepted: they are added up, and never used as indices.
TEST_F(HostilePeer, AcceptsAnyOccurrenceCounts) {
  RawPeer peer;
  Store store(peer.group(), {.threads = 1});
  store.add_table({.name = "t", .dim = 4, .admission_count = 100});
  std::uint64_t key = 0;
  while (kernels::home_of(Key{key}, 2) != 0) ++key;
  auto const keys = new_keys({key});
  peer.send(in(0, {intent(1, 1)}, keys.size()));
  peer.send_data(tag(Section::kKeys, 0, 0), keys);
  peer.receive_data(tag(Section::kValues, 1, 0), 4);  // no step has updated the row
  peer.send(RefreshPhase{.clock = Clock{0}});
  store.advance_clock();
  EXPECT_EQ(progress(store), "");
  auto message = in(1);
  message.gradients = {{1 + 32, 1 + 128}};
  message.report.samples = 1;
  peer.send(message);
  std::vector<std::uint8_t> body(48 + 129, 0xF8);  // counts: negative numbers of 8 bytes
  std::fill_n(body.begin(), 33, 8);                // sums, and zeros up to a multiple of 16
  std::fill_n(body.begin() + 33, 15, 0);
  peer.send_data(tag(Section::kGradientBody, 1, 0), body);
  peer.send(RefreshPhase{.clock = Clock{1}});
  store.advance_clock();
  EXPECT_EQ(progress(store), "");
  std::size_t rows = 0;
  store.scan(*stream_, table_, [&](View<Key const> some, auto) { rows += some.size(); });
  EXPECT_EQ(rows, 1U);  // very many occurrences
}

TEST_F(HostilePeer, RejectsStepEndBeforeItsKeys) {
  end_step();
  peer_.send(late_fetch(0, 3, 9));
  peer_.send(in(0));
  expect_rejected("before it sent the keys");
}

TEST_F(HostilePeer, RejectsLateFetchAfterStepEnd) {
  auto const keys = new_keys({1, 2, 3});
  peer_.send(in(0, {intent(1, 3)}, keys.size()));
  end_step();
  peer_.progress_rank_0();  // waits for the keys
  peer_.send(late_fetch(0, 3, keys.size()));
  peer_.send_data(tag(Section::kKeys, 0, 0), keys);
  expect_rejected("a step that it had ended");
}

// The requested row of four 16-bit numbers takes 8 bytes.
TEST_F(HostilePeer, RejectsValuesOfWrongType) {
  for (std::size_t const bytes : {4, 16}) {
    RawPeer peer;
    group_ = peer.group();
    store_.emplace(group_, StoreOptions{.threads = 1});
    store_->add_table({.name = "t", .dim = 4, .value_type = DataType::kHalf});
    stream_.emplace(store_->make_stream());
    auto const batch = read_from_peer(Clock{0});
    peer.send(LateFetchReply{.clock = Clock{0}});
    peer.send_data(tag(Section::kLateFetchValues, 0, 0), bytes);
    expect_rejected(fmt::format("sends {} bytes", bytes).c_str());
    store_.reset();
  }
}

TEST_F(HostilePeer, RejectsTwoTransfersWithOneTag) {
  for (int i = 0; i < 2; ++i) peer_.send_data(tag(Section::kGradients, 5, 0), 8);
  expect_rejected("two transfers under one tag");
}

TEST_F(HostilePeer, SanitizesErrorTextOfPeer) {
  end_step();
  auto message = in(0);
  message.report.rejection = "\033[2J\n" + std::string(1 << 20, 'x');
  peer_.send(message);
  peer_.send(RefreshPhase{.clock = Clock{0}});
  try {
    store_->wait_applied();
    FAIL() << "the step was not rejected";
  } catch (GradientError const& error) {
    std::string const text = error.what();
    EXPECT_EQ(text.substr(0, 8), "?[2J?xxx");
    EXPECT_LE(text.size(), comm::kPeerTextBytesMax + 4);
  }
}

}  // namespace
}  // namespace gpups::test::hostile_peer_test
