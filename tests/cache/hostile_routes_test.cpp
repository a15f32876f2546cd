// SPDX-License-Identifier: Apache-2.0
// A home that sends invalid routes and forwards, and requests that move rows at a wrong time.
#include "tests/support/hostile_peer.hpp"

namespace gpups::test {
namespace {

// The peer ends step 0, and its values of step 1 come with these routes and forwards.
class HostileHome : public HostilePeer {
 protected:
  void send_refresh(Message message) {
    end_step();
    peer_.send(in(0));
    message.kind = MessageKind::kRefreshPhase;
    message.clock = Clock{0};
    peer_.send(message);
  }
};

TEST_F(HostileHome, RejectsRouteOfUnknownBatch) {
  send_refresh({.routes = {{Clock{5}, {1}, {0}}}, .route_bytes = 3});
  expect_rejected("a route for a batch that was not announced");
}

TEST_F(HostileHome, RejectsRouteOfBatchThatHasLists) {
  auto const batch = read_from_peer(Clock{2});  // no row has moved, so the peer owns all rows of its home
  send_refresh({.routes = {{Clock{2}, {1}, {0}}}, .route_bytes = 3});
  expect_rejected("a route for a batch that was not announced");
}

TEST_F(HostileHome, RejectsRouteBytesWithoutRoutes) {
  Message message{.forwards = {}, .key_bytes = 9};
  send_refresh(message);
  expect_rejected("more bytes of keys than its batches can need");
}

TEST_F(HostileHome, RejectsForwardOfItsReceiversBatch) {
  send_refresh({.forwards = {{Rank{0}, {}, intent(2, 1)}}, .key_bytes = 9});
  expect_rejected("announced a batch to itself");
}

TEST_F(HostileHome, RejectsForwardForUnknownRank) {
  send_refresh({.forwards = {{Rank{7}, {}, intent(2, 1)}}, .key_bytes = 9});
  expect_rejected("announced a batch to itself");
}

TEST_F(HostileHome, RejectsForwardThatIsTooLate) {
  send_refresh({.forwards = {{Rank{1}, {}, intent(1, 1)}}, .key_bytes = 9});
  expect_rejected("announced a batch of step 1 at step 0");
}

TEST_F(HostileHome, RejectsForwardTwice) {
  send_refresh({.forwards = {{Rank{1}, {}, intent(2, 1)}, {Rank{1}, {}, intent(2, 1)}}, .key_bytes = 9});
  expect_rejected("announced a batch twice");
}

TEST_F(HostileHome, ForwardedKeysTakeNoMemory) {
  send_refresh({.forwards = {{Rank{1}, {}, intent(2, kHuge)}}, .key_bytes = 8 * kHuge});
  expect_rejected("nothing arrived for 300 s");  // the keys do not come
}

TEST_F(HostileHome, RejectsRowsThatWereNotToMove) {
  send_refresh({.moved = {1}});
  expect_rejected("sent values for other rows than were announced");
}

TEST_F(HostileHome, RejectsForwardTwiceInOneRole) {
  auto const move = cache::RowRole::kMove;
  send_refresh({.forwards = {{Rank{1}, move, intent(2, 1)}, {Rank{1}, move, intent(2, 1)}}, .key_bytes = 9});
  expect_rejected("announced a batch twice");
}

TEST_F(HostileHome, RejectsLateForwardThatMovesRows) {
  peer_.send({.kind = MessageKind::kLateForward,
              .clock = Clock{1},
              .forwards = {{Rank{1}, cache::RowRole::kUpdate, intent(1, 1)}},
              .key_bytes = 9});
  expect_rejected("forwarded a late fetch that moves");
}

TEST_F(HostileHome, RejectsRequestForRowsOfAFutureStep) {
  peer_.send({.kind = MessageKind::kLookup, .clock = Clock{2}, .keys = 1});
  expect_rejected("requested rows of a step that is not complete");
}

TEST_F(HostileHome, RejectsAnswersThatWereNotRequested) {
  auto const batch = read_from_peer(Clock{0});
  peer_.send({.kind = MessageKind::kLateFetchReply, .clock = Clock{0}, .id = 3});
  expect_rejected("answered a late fetch that was not requested");
}

TEST_F(HostileHome, RejectsRequestsThatMoveRowsAtAWrongTime) {
  for (auto const kind : {MessageKind::kClaim, MessageKind::kGrant, MessageKind::kTake}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    peer.send({.kind = kind, .keys = 1});
    EXPECT_NE(progress(store).find("localized rows while this rank did not"), std::string::npos);
  }
  peer_.send({.kind = MessageKind::kReturn, .keys = 1});
  expect_rejected("erased rows while this rank did not");
}

}  // namespace
}  // namespace gpups::test
