// SPDX-License-Identifier: Apache-2.0
// What a peer says of sums over the ranks, and sends for them.
#include "comm/collective/header.hpp"
#include "tests/hostile_peer.hpp"

namespace gpups::test {
namespace {

Message header_of(std::uint64_t id, comm::Header const& header) {
  return {.kind = MessageKind::kCollective, .id = id, .bytes = encode(header)};
}
comm::Signature sum_of(std::uint64_t elements) {
  return {.operation = comm::Operation::kSumIntegers, .elements = elements};
}
Message sum_of(std::uint64_t id, std::uint64_t elements) { return header_of(id, {.signature = sum_of(elements)}); }

class HostileSums : public HostilePeer {
 protected:
  // What goes wrong where this rank sums three integers, of which the peer's is the second slice: two.
  std::string sum() {
    std::vector<std::int64_t> values{1, 2, 3};
    return error_of([&] { group_.wait_allreduce(*stream_, group_.begin_allreduce(*stream_, values)); });
  }
  void expect_sum_refused(char const* words) {
    auto const text = sum();
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: '" << text << "'";
  }
};

TEST_F(HostileSums, APeerThatDoesItsPartIsHeard) {
  peer_.send(sum_of(0, 3));
  peer_.send_words(tag_of_run(0, 0), {10});
  peer_.send_words(tag_of_run(0, 1), {22, 33});
  peer_.take_data(tag_of_run(0, 0), 16);
  peer_.take_data(tag_of_run(0, 1), 8);
  peer_.on_idle = [this] { return peer_.progress(); };
  std::vector<std::int64_t> values{1, 2, 3};
  group_.wait_allreduce(*stream_, group_.begin_allreduce(*stream_, values));
  EXPECT_EQ(values, (std::vector<std::int64_t>{11, 22, 33}));
}

TEST_F(HostileSums, ASumThatNobodyBeganCostsNothing) {
  peer_.send(sum_of(0, comm::kSumElementsMax));
  EXPECT_EQ(turn(), "");
}

TEST_F(HostileSums, MoreAheadThanOneMay) {
  for (std::uint64_t id = 0; id < Group::kAllreducesMax; ++id) peer_.send(sum_of(id, 1));
  EXPECT_EQ(turn(), "");
  peer_.send(sum_of(Group::kAllreducesMax, 1));
  expect_refused("began allreduce 64 where 64 is its next and 0 is that of rank 0");
}

TEST_F(HostileSums, ASumTwice) {
  for (int i = 0; i < 2; ++i) peer_.send(sum_of(0, 3));
  expect_refused("began allreduce 0 where 1 is its next");
}

TEST_F(HostileSums, ASumOutOfTurn) {
  peer_.send(sum_of(1, 3));
  expect_refused("began allreduce 1 where 0 is its next");
}

TEST_F(HostileSums, AnotherSizeBeforeThisRankBegins) {
  peer_.send(sum_of(0, 4));
  expect_sum_refused("sums 4 integers in allreduce 0 where rank 0 sums 3");
}

TEST_F(HostileSums, AnotherSizeAfterThisRankHasBegun) {
  peer_.on_idle = [this] {
    peer_.send(sum_of(0, comm::kSumElementsMax));
    peer_.on_idle = [] { return false; };
    return true;
  };
  expect_sum_refused("sums 4294967296 integers in allreduce 0 where rank 0 sums 3");
}

TEST_F(HostileSums, MoreElementsThanThereCanBe) {
  peer_.send(sum_of(0, comm::kSumElementsMax + 1));
  expect_refused("more elements than one may");
}

TEST_F(HostileSums, AHeaderInAMessageOfAnotherKind) {
  peer_.send({.kind = MessageKind::kLookup, .bytes = sum_of(0, 3).bytes});
  expect_refused("has a piece to gather");
}

TEST_F(HostileSums, NumbersOfAnotherSizeThanAnnounced) {
  peer_.send(sum_of(0, 3));
  peer_.send_data(tag_of_run(0, 0), 800);
  expect_sum_refused("sends 800 bytes");
}

TEST_F(HostileSums, SumsOfAnotherSizeThanAnnounced) {
  peer_.send(sum_of(0, 3));
  peer_.send_data(tag_of_run(0, 1), 800);
  peer_.take_data(tag_of_run(0, 0), 16);
  peer_.on_idle = [this] { return peer_.progress(); };
  expect_sum_refused("sends 800 bytes");
}

TEST_F(HostileSums, NumbersTwice) {
  for (int i = 0; i < 2; ++i) peer_.send_words(tag_of_run(0, 0), {10});
  expect_sum_refused("two transfers under one tag");
}

TEST_F(HostileSums, APeerThatSaysNothingIsNamed) {
  expect_sum_refused("rank 0 awaited the sums of allreduce 0 from rank 1");
}

TEST_F(HostileSums, APeerThatTakesNothingIsNamed) {
  peer_.send(sum_of(0, 3));
  peer_.send_words(tag_of_run(0, 0), {10});
  expect_sum_refused("rank 0 awaited the sums of allreduce 0 from rank 1");
}

}  // namespace
}  // namespace gpups::test
