// SPDX-License-Identifier: Apache-2.0
// Claims, grants and takes of a peer in a call of localize().
#include <functional>
#include <string>
#include <vector>

#include "cache/protocol/requests/row_claims.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/hostile_peer.hpp"

namespace gpups::test::hostile_localize_test {
namespace {

Key key_of_home(std::uint32_t home) {
  std::uint64_t key = 0;
  while (kernels::home_of(Key{key}, 2) != home) ++key;
  return Key{key};
}

class HostileLocalize : public HostilePeer {
 protected:
  // Rank 0 localizes a row of home 1, and none of its own.
  std::string localize() {
    std::vector<Key> const keys{key_of_home(1)};
    return error_of([&] { store_->localize(*stream_, table_, View<Key const>(keys)); });
  }
  // The peer sends a claim and a grant.
  std::string localize(std::string const& claim, std::string const& grant) {
    answer_gathers(peer_, [=](std::uint64_t gather) { return gather == 0 ? claim : gather == 1 ? grant : ""; });
    return localize();
  }
  void expect_invalid(std::string const& error, std::string const& what) {
    EXPECT_NE(error.find("sent an invalid result for a collective call"), std::string::npos) << error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
  }

  std::string const no_claim_ = cache::encode_claim({});
  std::string const no_grant_ = cache::encode_grant(std::vector{cache::kNoOwner});
};

TEST_F(HostileLocalize, AcceptsValidClaimsAndGrants) {
  EXPECT_EQ(localize(cache::encode_claim(std::vector{key_of_home(0)}), no_grant_), "");
}

TEST_F(HostileLocalize, RejectsBytesThatAreNoClaim) { expect_invalid(localize("claim", no_grant_), "too short"); }

TEST_F(HostileLocalize, RejectsClaimLongerThanItsList) {
  expect_invalid(localize(no_claim_ + "x", no_grant_), "too long");
}

TEST_F(HostileLocalize, RejectsClaimOfAnotherHome) {
  expect_invalid(localize(cache::encode_claim(std::vector{key_of_home(1)}), no_grant_), "whose home is another rank");
}

// A rank that claims a row twice gets it once.
TEST_F(HostileLocalize, AcceptsRepeatedKeysOfClaim) {
  EXPECT_EQ(localize(cache::encode_claim(std::vector(3, key_of_home(0))), no_grant_), "");
}

TEST_F(HostileLocalize, RejectsGrantsOfOtherNumber) {
  for (auto const& grant : {cache::encode_grant({}), cache::encode_grant(std::vector(2, cache::kNoOwner))}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    auto const table = store.add_table({.name = "t", .dim = 4});
    auto stream = store.make_stream();
    answer_gathers(peer, [&](std::uint64_t gather) { return gather == 1 ? grant : no_claim_; });
    std::vector<Key> const keys{key_of_home(1)};
    expect_invalid(error_of([&] { store.localize(stream, table, View<Key const>(keys)); }), "of which 1 were claimed");
  }
}

TEST_F(HostileLocalize, RejectsGrantOfAnUnknownRank) {
  expect_invalid(localize(no_claim_, cache::encode_grant(std::vector{Rank{2}})), "rank 2, which does not exist");
}

TEST_F(HostileLocalize, RejectsSecondClaim) {
  peer_.on_idle = [this] {
    for (int i = 0; i < 2; ++i) {
      peer_.send(GatherPart{.id = 0, .call = "localize(table 't')", .bytes = rank_result("", no_claim_)});
    }
    peer_.on_idle = [] { return false; };
    return true;
  };
  EXPECT_NE(localize().find("sent its bytes for gather 0, but gather 1 is next"), std::string::npos);
}

// A rank may take rows when it has the grants of all homes.
TEST_F(HostileLocalize, RejectsTakeBeforeGrants) {
  peer_.on_idle = [this] {
    peer_.send(RowRequestHeader{.kind = RowRequestKind::kTake, .id = 0, .keys = 1});
    peer_.on_idle = [] { return false; };
    return true;
  };
  auto const text = localize();
  EXPECT_NE(text.find("localized rows while this rank did not"), std::string::npos) << text;
}

TEST_F(HostileLocalize, AcceptsTakeOfRepeatedAndUnknownKeys) {
  bool taken = false;
  answer_gathers(peer_, [&](std::uint64_t gather) {
    if (gather == 2) {
      peer_.send(RowRequestHeader{.kind = RowRequestKind::kTake, .id = 0, .keys = 3});
      peer_.send_words(tag(Section::kRequestKeys, 0, 1), {5, 5, 6});
      peer_.receive_data(tag(Section::kRequestValues, 0, 1), 48);
      peer_.receive_data(tag(Section::kRequestFound, 0, 1), 3);
      peer_.progress_rank_0();
      taken = true;
    }
    return gather == 0 ? no_claim_ : gather == 1 ? no_grant_ : "";
  });
  EXPECT_EQ(localize(), "");
  EXPECT_TRUE(taken);
}

TEST_F(HostileLocalize, AllowsNoTakesAfterwards) {
  EXPECT_EQ(localize(no_claim_, no_grant_), "");
  peer_.on_idle = [] { return false; };
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kTake, .id = 0, .keys = 1});
  expect_rejected("localized rows while this rank did not");
}

// A claim may be sent in several messages.
TEST_F(HostileLocalize, AcceptsClaimInParts) {
  peer_.on_idle = [this] {
    auto const bytes = rank_result("", cache::encode_claim(std::vector{key_of_home(0)}));
    std::string const call = "localize(table 't')";
    peer_.send(GatherPart{.id = 0, .call = call, .bytes = bytes.substr(0, 10), .more = true});
    peer_.send(GatherPart{.id = 0, .call = call, .bytes = bytes.substr(10, 10), .more = true});
    peer_.send(GatherPart{.id = 0, .call = call, .bytes = bytes.substr(20)});
    peer_.send(GatherPart{.id = 1, .call = call, .bytes = rank_result("", no_grant_)});
    peer_.on_idle = [this, call] {
      peer_.send(GatherPart{.id = 2, .call = call, .bytes = rank_result("", "")});
      peer_.on_idle = [] { return false; };
      return true;
    };
    return true;
  };
  EXPECT_EQ(localize(), "");
}

// Before this rank makes the call, it keeps one part only.
TEST_F(HostileLocalize, RejectsManyPartsBeforeTheCall) {
  for (int i = 0; i < 2; ++i) {
    peer_.send(GatherPart{.id = 0, .call = "localize(table 't')", .bytes = "abcd", .more = true});
  }
  expect_rejected("sent more bytes for gather 0 than it may send before rank 0 has begun it");
}

TEST_F(HostileLocalize, RejectsEmptyPartThatIsNotTheLast) {
  peer_.send(GatherPart{.id = 0, .call = "localize(table 't')", .more = true});
  expect_rejected("a part of a gather is empty, but not the last");
}

TEST_F(HostileLocalize, PeerThatLeavesIsNamed) {
  for (std::uint64_t const last : {0, 1, 2}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    auto const table = store.add_table({.name = "t", .dim = 4});
    auto stream = store.make_stream();
    answer_gathers(peer, [&](std::uint64_t gather) { return gather == 0 ? no_claim_ : no_grant_; });
    peer.on_idle = [&, answer = peer.on_idle, gathers = std::uint64_t{0}]() mutable {
      if (gathers++ < 1 + last) return answer();  // the first message is the schema
      peer.leave("it was stopped");
      peer.on_idle = [] { return false; };
      return true;
    };
    std::vector<Key> const keys{key_of_home(1)};
    auto const text = error_of([&] { store.localize(stream, table, View<Key const>(keys)); });
    EXPECT_NE(text.find("rank 1 is lost"), std::string::npos) << text;
  }
}

// Another thread of this rank prepares a batch while one waits in localize().
TEST_F(HostileLocalize, PrepareFailsMeanwhileAndSucceedsAfterwards) {
  bool tried = false;
  answer_gathers(peer_, [&](std::uint64_t gather) {
    tried = true;
    expect_error([&] { read_from_peer(Clock{0}); }, {"while erase(), expire() or localize() is in progress"});
    return gather == 0 ? no_claim_ : gather == 1 ? no_grant_ : "";
  });
  EXPECT_EQ(localize(), "");
  EXPECT_TRUE(tried);
  (void)read_from_peer(Clock{0});
}

// All ranks throw the error of a rank, and rows stay where they are.
TEST_F(HostileLocalize, ThrowsTheErrorOfThePeer) {
  peer_.on_idle = [this] {
    peer_.send(GatherPart{.id = 0, .call = "localize(table 't')", .bytes = rank_result("rank 1 has no memory", "")});
    peer_.on_idle = [] { return false; };
    return true;
  };
  std::vector<Key> const keys{key_of_home(0)};
  expect_error([&] { store_->localize(*stream_, table_, View<Key const>(keys)); }, {"rank 1 has no memory"});
  EXPECT_EQ(store_->where(table_, keys[0]).owner, Rank{0});
}

}  // namespace
}  // namespace gpups::test::hostile_localize_test
