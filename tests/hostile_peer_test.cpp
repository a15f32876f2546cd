// SPDX-License-Identifier: Apache-2.0
// What a peer must not be able to do: rank 0 is a store, rank 1 sends what the test likes. Each is a PeerError that
// names rank 1 and says what was wrong, and costs no memory that rank 1's bytes do not justify.
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "comm/peer_text.hpp"
#include "comm/wire.hpp"
#include "gpups/error.hpp"
#include "gpups/store.hpp"
#include "kernels/hash.hpp"
#include "tests/raw_peer.hpp"
#include "tests/temporary_folder.hpp"

namespace gpups::test {
namespace {

using cache::Intent;
using cache::Message;
using cache::MessageKind;
using cache::Section;
using cache::tag;

constexpr std::uint64_t kHuge = (std::uint64_t{1} << 28) - 1;  // keys: the most that a header may name
constexpr auto kLast = std::numeric_limits<std::int64_t>::max(), kFirst = std::numeric_limits<std::int64_t>::min();

class HostilePeer : public testing::Test {
 protected:
  HostilePeer() : store_(std::in_place, peer_.group(), StoreOptions{.threads = 1}) {
    table_ = store_->add_table({.name = "t", .dim = 4});
    stream_.emplace(store_->make_stream());
  }

  // The store turns until nothing happens; what went wrong.
  std::string turn() { return turn(*store_); }
  std::string turn(Store& store) {
    return error_of([&] {
      auto stream = store.make_stream();
      for (int i = 0; i < 3; ++i) store.scan(stream, table_, [](auto, auto) {});
      store.wait_flush();
    });
  }
  template <class Call>
  std::string error_of(Call const& call) {
    std::size_t const before = memory::usage(Device::host()).bytes_peak;
    std::string text;
    try {
      call();
    } catch (PeerError const& error) {
      EXPECT_EQ(error.peer(), Rank{1});
      EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
      text = error.what();
    }
    EXPECT_LT(memory::usage(Device::host()).bytes_peak, before + (std::size_t{64} << 20));
    return text;
  }
  // The store's next turn throws an error with these words.
  void expect_refused(char const* words) {
    auto const text = turn();
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: '" << text << "'";
  }

  static Intent intent(std::int64_t clock, std::uint64_t keys, TableId table = TableId{0}) {
    return {Clock{clock}, {{table, keys}}};
  }
  static Message in(std::int64_t clock, std::vector<Intent> intents = {}) {
    return {.kind = MessageKind::kIn, .clock = Clock{clock}, .intents = std::move(intents)};
  }
  static Message urgent(std::int64_t clock, std::uint64_t keys) {
    return {.kind = MessageKind::kUrgent, .clock = Clock{clock}, .intents = {intent(clock, keys)}};
  }
  // The store's step ends, so that what kIn announces is taken.
  void end_step() { store_->advance_clock(); }

  // Prepares a batch of one key that rank 1 owns.
  Prepared read_from_peer(Clock clock) {
    std::uint64_t key = 0;
    while (kernels::home_of(Key{key}, 2) != 1) ++key;
    auto const keys = to_device(*stream_, std::vector{Key{key}});
    TableBatch const batch{.table = table_, .keys = View<Key const>(keys)};
    return store_->prepare(*stream_, clock, {&batch, 1}, 1);
  }
  void push_zeros(Prepared const& batch) {
    Matrix<float> const sources(Device::host(), 1, 4);
    memory::fill_bytes(*stream_, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store_->push(*stream_, batch, {&gradients, 1});
  }

  RawPeer peer_;
  std::optional<Store> store_;
  std::optional<Stream> stream_;
  TableId table_{};
};

// -- claims --

TEST_F(HostilePeer, KeysThatAreNamedAndNeverComeCostNothing) {
  peer_.send(urgent(0, kHuge));
  EXPECT_EQ(turn(), "");
  peer_.send({.kind = MessageKind::kLookup, .id = 1, .keys = kHuge});
  EXPECT_EQ(turn(), "");
}

TEST_F(HostilePeer, KeysOfAnotherNumberThanNamed) {
  peer_.send(urgent(0, kHuge));
  peer_.send_data(tag(Section::kUrgentKeys, 0, 0), 80);
  expect_refused("sends 80 bytes");
}

TEST_F(HostilePeer, LookupOfAnotherNumberThanNamed) {
  peer_.send({.kind = MessageKind::kLookup, .id = 1, .keys = kHuge});
  peer_.send_data(tag(Section::kRequestKeys, 1, 1), 80);
  expect_refused("sends 80 bytes");
}

TEST_F(HostilePeer, MoreKeysThanThereCanBe) {
  for (std::uint64_t const keys : {kHuge + 1, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    peer.send(urgent(0, keys));
    EXPECT_NE(turn(store).find("more keys than one may"), std::string::npos) << keys;
  }
  peer_.send({.kind = MessageKind::kLookup, .keys = kHuge + 1});
  expect_refused("more keys than one may");
}

TEST_F(HostilePeer, RequestsForNothingOrForAnotherTable) {
  peer_.send({.kind = MessageKind::kLookup, .table = TableId{7}, .keys = 1});
  expect_refused("a table that is not there");
}

TEST_F(HostilePeer, RequestForNoRows) {
  peer_.send({.kind = MessageKind::kLookup, .keys = 0});
  expect_refused("asked for no rows");
}

TEST_F(HostilePeer, MorePartsThanTagsCanTell) {
  Intent many{Clock{1}, {}};
  for (std::size_t p = 0; p <= cache::kPartsMax; ++p) many.parts.push_back({TableId{0}, 1});
  peer_.send(in(0, {many}));
  expect_refused("too many parts");
}

TEST_F(HostilePeer, FieldsOfAnotherKind) {
  peer_.send({.kind = MessageKind::kOut, .intents = {intent(1, 1)}});
  expect_refused("announces batches");
}

TEST_F(HostilePeer, BytesThatAreNoMessage) {
  peer_.send_bytes("hello");
  expect_refused("not a message");
}

// -- the round --

TEST_F(HostilePeer, ClocksOfAllSizes) {
  for (std::int64_t const clock : {kFirst, std::int64_t{-1}, std::int64_t{1}, kLast - 1, kLast}) {
    for (auto const kind : {MessageKind::kIn, MessageKind::kOut, MessageKind::kUrgent, MessageKind::kUrgentAnswer}) {
      RawPeer peer;
      Store store(peer.group(), {.threads = 1});
      store.add_table({.name = "t", .dim = 4});
      Message message{.kind = kind, .clock = Clock{clock}};
      if (kind == MessageKind::kUrgent) message.intents = {intent(clock, 1)};
      if (kind == MessageKind::kUrgent && clock == 1) continue;  // may be
      peer.send(message);
      EXPECT_NE(turn(store), "") << clock << ", kind " << static_cast<int>(kind);
    }
  }
}

TEST_F(HostilePeer, BatchesTooFarAheadOrTooLate) {
  for (std::int64_t const clock : {kFirst, std::int64_t{0}, cache::kStepsAheadMax + 1, kLast}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    peer.send(in(0, {intent(clock, 1)}));
    store.advance_clock();
    EXPECT_NE(turn(store).find("announced a batch of step"), std::string::npos) << clock;
  }
}

TEST_F(HostilePeer, ABatchTwice) {
  end_step();
  peer_.send(in(0, {intent(1, 1), intent(1, 1)}));
  expect_refused("announced a batch twice");
}

TEST_F(HostilePeer, ABatchOfATableThatIsNotThere) {
  end_step();
  peer_.send(in(0, {intent(1, 1, TableId{9})}));
  expect_refused("a table that is not there");
}

TEST_F(HostilePeer, MorePartsAheadThanOneMay) {
  end_step();
  std::vector<Intent> intents;
  for (std::int64_t clock = 1; clock <= 257; ++clock) {
    intents.push_back({Clock{clock}, std::vector(cache::kPartsMax, cache::IntentPart{TableId{0}, 0})});
  }
  peer_.send(in(0, intents));
  expect_refused("parts of batches ahead");
}

TEST_F(HostilePeer, GradientsThatWereNotAnnounced) {
  end_step();
  auto message = in(0);
  message.parts = 1;
  peer_.send(message);
  expect_refused("gradients that it did not announce");
}

TEST_F(HostilePeer, AStepThatEndsBeforeItsKeysHaveCome) {
  end_step();
  peer_.send(urgent(0, 3));
  peer_.send(in(0));
  expect_refused("keys it has not sent");
}

TEST_F(HostilePeer, AReadForAStepThatItHadEnded) {
  peer_.send(in(0, {intent(1, 3)}));
  end_step();
  EXPECT_NE(turn(), "");  // awaits the keys
  peer_.send(urgent(0, 3));
  peer_.send_words(tag(Section::kKeys, 1, 0), {1, 2, 3});
  expect_refused("a step that it had ended");
}

TEST_F(HostilePeer, TwoTransfersUnderOneTag) {
  for (int i = 0; i < 2; ++i) peer_.send_data(tag(Section::kGradients, 5, 0), 8);
  expect_refused("two transfers under one tag");
}

TEST_F(HostilePeer, WordsOfAPeerAreCutAndCleaned) {
  end_step();
  auto message = in(0);
  message.error = "\033[2J\n" + std::string(1 << 20, 'x');
  peer_.send(message);
  peer_.send({.kind = MessageKind::kOut, .clock = Clock{0}});
  try {
    store_->wait_flush();
    FAIL() << "the step was not refused";
  } catch (GradientError const& error) {
    std::string const text = error.what();
    EXPECT_EQ(text.substr(0, 8), "?[2J?xxx");
    EXPECT_LE(text.size(), comm::kPeerTextBytesMax + 4);
  }
}

// -- answers --

TEST_F(HostilePeer, AnUrgentAnswerTwice) {
  auto const batch = read_from_peer(Clock{0});
  peer_.on_idle = [this] {
    for (int i = 0; i < 2; ++i) peer_.send({.kind = MessageKind::kUrgentAnswer});
    peer_.on_idle = [] { return false; };
    return true;
  };
  EXPECT_NE(error_of([&] { store_->wait_ready(batch); }).find("nobody asked of it"), std::string::npos);
}

TEST_F(HostilePeer, AnAnswerThatNobodyAskedFor) {
  peer_.send({.kind = MessageKind::kLookupAnswer, .id = 0});
  expect_refused("a request that nobody made of it");
}

TEST_F(HostilePeer, AnAnswerOfAnotherKindOrTwice) {
  for (auto const& kinds :
       {std::vector{MessageKind::kAssignAnswer}, std::vector{MessageKind::kLookupAnswer, MessageKind::kLookupAnswer}}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    auto const table = store.add_table({.name = "t", .dim = 4});
    auto stream = store.make_stream();
    peer.on_idle = [&] {
      for (auto const kind : kinds) peer.send({.kind = kind, .id = 0});
      peer.on_idle = [] { return false; };
      return true;
    };
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 20; ++k) keys.push_back(Key{k});
    auto const asked = to_device(stream, keys);
    Matrix<float> const values(Device::host(), keys.size(), 4);
    auto const text = error_of([&] { store.lookup(stream, table, asked, values, {}); });
    EXPECT_NE(text.find("a request that nobody made of it"), std::string::npos) << text;
  }
}

// -- requests --

TEST_F(HostilePeer, RowsSetOutsideOfTheCollective) {
  peer_.send({.kind = MessageKind::kAssign, .id = 0, .keys = 1});
  expect_refused("set rows while this rank does not");
}

TEST_F(HostilePeer, ARequestTwice) {
  for (int i = 0; i < 2; ++i) peer_.send({.kind = MessageKind::kLookup, .id = 4, .keys = 1});
  expect_refused("made a request twice");
}

TEST_F(HostilePeer, RequestsWhoseAnswersAreNotTaken) {
  for (std::uint64_t id = 0; id <= 16; ++id) {
    peer_.send({.kind = MessageKind::kLookup, .id = id, .keys = 1});
    peer_.send_words(tag(Section::kRequestKeys, id, 1), {id});
  }
  expect_refused("without taking their answers");
}

TEST_F(HostilePeer, RequestsWhoseAnswersAreTakenMayBeMany) {
  for (std::uint64_t id = 0; id < 100; ++id) {
    peer_.send({.kind = MessageKind::kLookup, .id = id, .keys = 1});
    peer_.send_words(tag(Section::kRequestKeys, id, 1), {id});
    peer_.take_data(tag(Section::kRequestValues, id, 1), 16);
    peer_.take_data(tag(Section::kRequestFound, id, 1), 1);
    ASSERT_EQ(turn(), "") << id;
    peer_.progress();
    ASSERT_EQ(turn(), "") << id;
  }
}

TEST_F(HostilePeer, GathersAheadOfThisRank) {
  for (std::uint64_t id = 0; id < 2; ++id) peer_.send({.kind = MessageKind::kGather, .id = id});
  expect_refused("piece of gather 1");
}

TEST_F(HostilePeer, GathersOutOfTurn) {
  peer_.send({.kind = MessageKind::kGather, .id = ~std::uint64_t{0}});
  expect_refused("a number that no tag can hold");
}

TEST_F(HostilePeer, AGatherOutOfTurn) {
  peer_.send({.kind = MessageKind::kGather, .id = 1});
  expect_refused("where 0 is next");
}

TEST_F(HostilePeer, RequestsWhoseTagsWouldBeOne) {
  for (std::uint64_t const id : {std::uint64_t{3}, cache::kIdEnd + 3}) {
    peer_.send({.kind = MessageKind::kLookup, .id = id, .keys = 1});
  }
  expect_refused("a number that no tag can hold");
}

// What a rank says of its file becomes a path on rank 0.
TEST_F(HostilePeer, AFileNameThatLeadsElsewhere) {
  for (std::string const name : {"../../elsewhere", "/etc/passwd", "rows-0-of-2.bin", "", "\033[2J"}) {
    TemporaryFolder const folder;
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    std::uint64_t gathers = 0;
    peer.on_idle = [&] {
      if (!peer.receive()) return false;
      comm::Writer seal, said;
      seal.put_text(name);
      seal.put<std::uint64_t>(8);
      seal.put<std::uint64_t>(0);
      said.put_text("");
      said.put_text(gathers == 1 ? seal.body() : "");
      peer.send({.kind = MessageKind::kGather, .id = gathers++, .bytes = said.body()});
      return true;
    };
    auto const text = error_of([&] { store.save(folder.path(), {}); });
    EXPECT_NE(text.find("cannot be part of a checkpoint"), std::string::npos) << text;
    EXPECT_EQ(text.find('\033'), std::string::npos);
  }
}

// -- a regular program that is unusual --

TEST_F(HostilePeer, APushThatDoesNotWaitForItsRowsEndsTheStepWhenTheyHaveCome) {
  auto const batch = read_from_peer(Clock{0});
  push_zeros(batch);
  end_step();
  EXPECT_NE(turn(), "");
  auto const first = peer_.receive();
  ASSERT_TRUE(first && first->kind == MessageKind::kUrgent);
  EXPECT_FALSE(peer_.receive());  // nothing of the step before its rows have come
  peer_.send({.kind = MessageKind::kUrgentAnswer});
  peer_.send_data(tag(Section::kUrgentValues, 0, 0), 16);
  peer_.send(in(0));
  EXPECT_NE(turn(), "");  // awaits the end of the step
  auto const second = peer_.receive();
  ASSERT_TRUE(second && second->kind == MessageKind::kIn);
  EXPECT_EQ(second->parts, 1U);
  peer_.send({.kind = MessageKind::kOut});
  EXPECT_EQ(turn(), "");
}

}  // namespace
}  // namespace gpups::test
