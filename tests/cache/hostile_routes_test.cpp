// SPDX-License-Identifier: Apache-2.0
// A home that sends invalid routes and forwards, and requests that move rows at a wrong time.
#include "tests/support/hostile_peer.hpp"

namespace gpups::test::hostile_routes_test {
namespace {

// The peer ends step 0, and its gradients come with these routes and forwards.
class HostileHome : public HostilePeer {
 protected:
  using HostilePeer::HostilePeer;
  void send_gradients(GradientPhase const& message) {
    end_step();
    peer_.send(message);
  }
};

TEST_F(HostileHome, RejectsRouteOfUnknownBatch) {
  send_gradients({.routes = {{{Clock{5}, {{.away = true}}}}, 1}});
  expect_rejected("a route for a batch that was not announced");
}

TEST_F(HostileHome, RejectsRouteOfBatchThatHasLists) {
  auto const batch = read_from_peer(Clock{2});  // no row has moved, so the peer owns all rows of its home
  send_gradients({.routes = {{{Clock{2}, {{.away = true}}}}, 1}});
  expect_rejected("a route for a batch that was not announced");
}

TEST_F(HostileHome, RejectsForwardBytesWithoutForwards) {
  send_gradients({.forwards = {{}, 9}});
  expect_rejected("more bytes of keys than its batches can need");
}

TEST_F(HostileHome, RejectsForwardOfItsReceiversBatch) {
  send_gradients({.forwards = {{{Rank{0}, {}, intent(1, 1)}}, 9}});
  expect_rejected("announced a batch to itself");
}

TEST_F(HostileHome, RejectsForwardForUnknownRank) {
  send_gradients({.forwards = {{{Rank{7}, {}, intent(1, 1)}}, 9}});
  expect_rejected("announced a batch to itself");
}

TEST_F(HostileHome, RejectsForwardThatIsTooLate) {
  send_gradients({.forwards = {{{Rank{1}, {}, intent(0, 1)}}, 9}});
  expect_rejected("announced a batch of step 0 at step 0");
}

TEST_F(HostileHome, RejectsForwardThatIsTooEarly) {
  send_gradients({.forwards = {{{Rank{1}, {}, intent(2, 1)}}, 9}});
  expect_rejected("announced a batch of step 2 at step 0");
}

TEST_F(HostileHome, RejectsForwardTwice) {
  send_gradients({.forwards = {{{Rank{1}, {}, intent(1, 1)}, {Rank{1}, {}, intent(1, 1)}}, 9}});
  expect_rejected("announced a batch twice");
}

TEST_F(HostileHome, ForwardedKeysTakeNoMemory) {
  send_gradients({.forwards = {{{Rank{1}, {}, intent(1, kHuge)}}, 8 * kHuge}});
  expect_rejected("nothing arrived for 300 s");  // the keys do not come
}

TEST_F(HostileHome, RejectsRowsThatWereNotToMove) {
  send_gradients({});
  peer_.send(RefreshPhase{.clock = Clock{0}, .moved_sent = {1}});
  expect_rejected("sent values for other rows than were announced");
}

TEST_F(HostileHome, RejectsLateForwardThatMovesRows) {
  peer_.send(LateForward{.forward = {Rank{1}, cache::RowRole::kUpdate, intent(1, 1)}, .key_bytes = 9});
  expect_rejected("forwarded a late fetch that moves");
}

TEST_F(HostileHome, RejectsForwardThatMovesRowsIfNoRowsMove) {
  send_gradients({.forwards = {{{Rank{1}, cache::RowRole::kMove, intent(1, 1)}}, 9}});
  expect_rejected("moves rows of a store whose rows do not move");
}

TEST_F(HostileHome, RejectsForwardOfKeyOfAnotherHome) {
  std::uint64_t key = 0;
  while (kernels::home_of(Key{key}, 2) != 0) ++key;
  auto const bytes = new_keys({key});
  send_gradients({.forwards = {{{Rank{1}, {}, intent(1, 1)}}, bytes.size()}});
  peer_.send_data(tag(Section::kForwardKeys, 0, 0), bytes);
  expect_rejected("whose home is another rank");
}

// A home of a store whose rows move.
class HostileMover : public HostileHome {
 protected:
  HostileMover() : HostileHome(PlacementPolicy::kAdaptive) {}

  // The peer is the home and the owner of the row of the store's batch of step 2. It says who owns the row in that
  // step, and the step before ends.
  void send_route(std::vector<std::uint8_t> const& in_step) {
    batch_ = read_from_peer(Clock{2});
    send_gradients({});
    peer_.send(RefreshPhase{.clock = Clock{0}});
    EXPECT_EQ(progress(), "");
    end_step();
    auto message = in(1);
    message.routes = {{{Clock{2}, {{.moves = true}}}}, in_step.size()};
    peer_.send(message);
    peer_.send_data(tag(Section::kRoutes, 1, 0), in_step);
  }
  void pass_rows(std::vector<std::uint64_t> const& moved) {
    peer_.send(RefreshPhase{.clock = Clock{1}, .moved_sent = moved});
  }

  PreparedBatch batch_;
};

TEST_F(HostileMover, RejectsForwardTwiceInOneRole) {
  auto const move = cache::RowRole::kMove;
  send_gradients({.forwards = {{{Rank{1}, move, intent(1, 1)}, {Rank{1}, move, intent(1, 1)}}, 9}});
  expect_rejected("announced a batch twice");
}

TEST_F(HostileMover, RejectsRouteToUnknownRank) {
  send_route({2});
  expect_rejected("a route to a rank that does not exist");
}

TEST_F(HostileMover, RejectsRouteOfLateBatch) {
  auto const batch = read_from_peer(Clock{1});  // announced one step ahead
  send_gradients({.routes = {{{Clock{1}, {{.away = true}}}}, 1}});
  expect_rejected("a route for a batch that was not announced");
}

TEST_F(HostileMover, RejectsRouteOfALaterStep) {
  auto const batch = read_from_peer(Clock{3});
  send_gradients({.routes = {{{Clock{3}, {{.away = true}}}}, 1}});
  expect_rejected("a route for a batch that was not announced");
}

TEST_F(HostileMover, RejectsMissingRows) {
  send_route({0});
  pass_rows({});
  expect_rejected("sent values for other rows than were announced");
}

TEST_F(HostileMover, RejectsMoreRowsThanMove) {
  send_route({0});
  pass_rows({2});
  expect_rejected("passed other rows than its home has announced");
}

TEST_F(HostileMover, RejectsRowsThatDifferFromTheirNumber) {
  send_route({0});
  pass_rows({1});
  peer_.send_data(cache::tag_of_moved_rows(Clock{2}),
                  16 + 16 + 16 + 8);  // a bitmap without bits, values, state, lifecycle
  expect_rejected("passed a different number of rows than its message says");
}

TEST_F(HostileMover, RejectsLateRouteWithMoves) {
  auto const batch = read_from_peer(Clock{0});
  peer_.send(LateFetchReply{.clock = Clock{0}, .id = 0, .routes = {{{Clock{0}, {{.moves = true}}}}, 1}});
  expect_rejected("sent a route with moves for a late fetch");
}

TEST_F(HostileHome, RejectsRequestForRowsOfAFutureStep) {
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kLookup, .clock = Clock{2}, .keys = 1});
  expect_rejected("requested rows of a step that is not complete");
}

TEST_F(HostileHome, RejectsAnswersThatWereNotRequested) {
  auto const batch = read_from_peer(Clock{0});
  peer_.send(LateFetchReply{.clock = Clock{0}, .id = 3});
  expect_rejected("answered a late fetch that was not requested");
}

TEST_F(HostileHome, RejectsRequestsThatMoveRowsAtAWrongTime) {
  RawPeer peer;
  Store store(peer.group(), {.threads = 1});
  store.add_table({.name = "t", .dim = 4});
  peer.send(RowRequestHeader{.kind = RowRequestKind::kTake, .keys = 1});
  EXPECT_NE(progress(store).find("localized rows while this rank did not"), std::string::npos);
  peer_.send(RowRequestHeader{.kind = RowRequestKind::kReturn, .keys = 1});
  expect_rejected("erased rows while this rank did not");
}

}  // namespace
}  // namespace gpups::test::hostile_routes_test
