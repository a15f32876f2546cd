// SPDX-License-Identifier: Apache-2.0
// Requests and replies of a peer outside of the round, and programs that are unusual but valid.
#include <functional>
#include <string>
#include <utility>

#include "comm/base/serialization.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/hostile_peer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::hostile_requests_test {
namespace {

template <class T>
bool is(std::optional<Message> const& message) {
  return message && std::holds_alternative<T>(*message);
}

// -- replies --

TEST_F(HostilePeer, RejectsSecondLateFetchReply) {
  auto const batch = read_from_peer(Clock{0});
  peer_.on_idle = [this] {
    for (int i = 0; i < 2; ++i) peer_.send(LateFetchReply{});
    peer_.on_idle = [] { return false; };
    return true;
  };
  EXPECT_NE(error_of([&] { store_->wait_ready(batch); }).find("a late fetch that was not requested"),
            std::string::npos);
}

TEST_F(HostilePeer, RejectsUnrequestedReply) {
  peer_.send(RowReplyHeader{.kind = RowRequestKind::kLookup, .id = 0});
  expect_rejected("a reply without a request");
}

TEST_F(HostilePeer, RejectsReplyOfWrongKindOrTwice) {
  for (auto const& kinds : {std::vector{RowRequestKind::kAssign}, std::vector(2, RowRequestKind::kLookup)}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    auto const table = store.add_table({.name = "t", .dim = 4});
    auto stream = store.make_stream();
    peer.on_idle = [&] {
      for (auto const kind : kinds) peer.send(RowReplyHeader{.kind = kind, .id = 0});
      peer.on_idle = [] { return false; };
      return true;
    };
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 20; ++k) keys.push_back(Key{k});
    auto const requested = to_device(stream, keys);
    Matrix<float> const values(Device::host(), keys.size(), 4);
    auto const text = error_of([&] { store.lookup(stream, table, requested, values, {}); });
    EXPECT_NE(text.find("a reply without a request"), std::string::npos) << text;
  }
}

// -- requests --

TEST_F(HostilePeer, RejectsAssignOutsideCollective) {
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kAssign, .id = 0, .keys = 1});
  expect_rejected("assigned rows while this rank did not");
}

TEST_F(HostilePeer, RejectsEraseOutsideCollective) {
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kErase, .id = 0, .keys = 1});
  expect_rejected("erased rows while this rank did not");
}

// A rank that waits in erase accepts requests to erase, and no other changes.
TEST_F(HostilePeer, RejectsAssignDuringErase) {
  peer_.on_idle = [this] {
    peer_.send(RowRequestHeader{.kind = RowRequestKind::kAssign, .id = 0, .keys = 1});
    peer_.on_idle = [] { return false; };
    return true;
  };
  auto const text = error_of([&] { store_->erase(*stream_, table_, {}); });
  EXPECT_NE(text.find("assigned rows while this rank did not"), std::string::npos) << text;
}

// Another thread of this rank prepares a batch while one waits in erase.
TEST_F(HostilePeer, PrepareFailsDuringErase) {
  bool tried = false;
  peer_.on_idle = [&] {
    tried = true;
    expect_error([&] { read_from_peer(Clock{0}); },
                 {"while erase(), expire() or localize() is in progress", "has returned"});
    return false;
  };
  EXPECT_NE(error_of([&] { store_->erase(*stream_, table_, {}); }), "");  // the peer never calls erase
  EXPECT_TRUE(tried);
}

TEST_F(HostilePeer, RejectsInvalidExpireResult) {
  answer_gathers(peer_, [](std::uint64_t) { return "many"; });
  auto const text = error_of([&] { store_->expire(table_, 5); });
  EXPECT_NE(text.find("sent an invalid result for a collective call"), std::string::npos) << text;
}

TEST_F(HostilePeer, RejectsDuplicateRequest) {
  for (int i = 0; i < 2; ++i) peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .id = 4, .keys = 1});
  expect_rejected("sent a request twice");
}

TEST_F(HostilePeer, RejectsTooManyUnreadReplies) {
  EXPECT_EQ(progress(), "");
  for (std::uint64_t id = 0; id <= 4 * Store::kLookupsMax; ++id) {
    peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .id = id, .keys = 1});
    peer_.send_words(tag(Section::kRequestKeys, id, 1), {id});
    peer_.progress_rank_0();
  }
  expect_rejected("without receiving the replies");
}

TEST_F(HostilePeer, AcceptsManyRequestsWithReadReplies) {
  for (std::uint64_t id = 0; id < 100; ++id) {
    peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .id = id, .keys = 1});
    peer_.send_words(tag(Section::kRequestKeys, id, 1), {id});
    peer_.receive_data(tag(Section::kRequestValues, id, 1), 16);
    peer_.receive_data(tag(Section::kRequestFound, id, 1), 1);
    ASSERT_EQ(progress(), "") << id;
    peer_.progress();
    ASSERT_EQ(progress(), "") << id;
  }
}

TEST_F(HostilePeer, RejectsGatherAheadOfThisRank) {
  for (std::uint64_t id = 0; id < 2; ++id) peer_.send(GatherPart{.id = id});
  expect_rejected("bytes for gather 1");
}

TEST_F(HostilePeer, RejectsGatherIdThatFitsNoTag) {
  peer_.send(GatherPart{.id = ~std::uint64_t{0}});
  expect_rejected("a number that is too large for tags");
}

TEST_F(HostilePeer, RejectsGatherOutOfOrder) {
  peer_.send(GatherPart{.id = 1});
  expect_rejected("but gather 0 is next");
}

TEST_F(HostilePeer, RejectsRequestIdThatFitsNoTag) {
  for (std::uint64_t const id : {std::uint64_t{3}, cache::kIdEnd + 3}) {
    peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .id = id, .keys = 1});
  }
  expect_rejected("a number that is too large for tags");
}

// Rank 0 makes a path from the file name that a rank sends.
TEST_F(HostilePeer, RejectsUnsafeFileName) {
  for (std::string const name : {"../../elsewhere", "/etc/passwd", "rows-0-of-2.bin", "", "\033[2J"}) {
    TemporaryFolder const folder;
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    comm::Writer record;
    record.put_text(name);
    record.put<std::uint64_t>(8);
    record.put<std::uint64_t>(0);
    answer_gathers(peer, [bytes = record.take()](std::uint64_t i) { return i == 1 ? bytes : ""; });
    auto const text = error_of([&] { store.save(folder.path(), {}); });
    EXPECT_NE(text.find("sent an invalid result for a collective call"), std::string::npos) << text;
    EXPECT_EQ(text.find('\033'), std::string::npos);
  }
}

// The row counts of a rank decide where other ranks write their rows.
TEST_F(HostilePeer, RejectsInvalidRowCounts) {
  for (std::vector<std::uint64_t> const& counts : {std::vector{~std::uint64_t{0}}, {1, 1}, {}}) {
    TemporaryFolder const folder;
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    comm::Writer list;
    list.put_list<std::uint64_t>(counts);
    answer_gathers(peer, [bytes = list.take()](std::uint64_t) { return bytes; });
    auto const text = error_of([&] { store.export_rows(folder.path() / "out", ExportFormat::kNpy); });
    EXPECT_NE(text.find("sent an invalid result for a collective call"), std::string::npos) << text;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

// -- programs that are unusual but valid --

TEST_F(HostilePeer, StepEndsWhenRowsArriveAfterPush) {
  auto const batch = read_from_peer(Clock{0});
  push_zeros(batch);
  end_step();
  peer_.progress_rank_0();
  EXPECT_TRUE(is<SchemaMessage>(peer_.receive()));
  EXPECT_TRUE(is<LateFetch>(peer_.receive()));
  EXPECT_FALSE(peer_.receive());  // no gradients of the step before its rows have arrived
  peer_.send(LateFetchReply{});
  peer_.send_data(tag(Section::kLateFetchValues, 0, 0), 16);
  peer_.send(in(0));
  peer_.progress_rank_0();
  auto const gradients = peer_.receive();
  ASSERT_TRUE(is<GradientPhase>(gradients));
  EXPECT_EQ(std::get<GradientPhase>(*gradients).gradients.size(), 1U);
  peer_.send(RefreshPhase{});
  EXPECT_EQ(progress(), "");
}

TEST_F(HostilePeer, DestroyedStoreCompletesLastStep) {
  push_zeros(read_from_peer(Clock{0}));
  end_step();
  peer_.progress_rank_0();
  std::vector<Message> received;
  bool answered = false;
  peer_.on_idle = [&] {
    while (auto const message = peer_.receive()) received.push_back(*message);
    if (std::exchange(answered, true)) return false;
    peer_.send(LateFetchReply{});
    peer_.send_data(tag(Section::kLateFetchValues, 0, 0), 16);
    peer_.receive_data(tag(Section::kLateFetchKeys, 0, 0), new_keys({0}).size());
    peer_.progress();
    return true;
  };
  store_.reset();
  ASSERT_EQ(received.size(), 3U);
  EXPECT_TRUE(is<SchemaMessage>(received[0]) && is<LateFetch>(received[1]) && is<GradientPhase>(received[2]));
}

}  // namespace
}  // namespace gpups::test::hostile_requests_test
