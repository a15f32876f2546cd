// SPDX-License-Identifier: Apache-2.0
// The failure detector: every rank that leaves or is lost is reported to all other ranks, once and with the same text.
#include "comm/bootstrap/failure_detector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/membership.hpp"
#include "tests/comm/bootstrap/failure_detector_fixture.hpp"
#include "tests/comm/bootstrap/join_fixture.hpp"

namespace gpups::test::failure_detector_test {
namespace {

using namespace gpups::comm;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kProcessEnded = "1 lost: its process ended";

// Ranks in one process.
struct Job {
  explicit Job(int size, double peer_timeout_s = 60) {
    auto outcomes =
        join_all(size, [=](int, JoinRequest& request) { request.failure_detector.peer_timeout_s = peer_timeout_s; });
    log.resize(static_cast<std::size_t>(size));
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      EXPECT_EQ(outcomes[rank].error, "");
      watches.push_back(std::move(outcomes[rank].joined.failure_detector));
      log[rank] = std::make_unique<EventLog>();
      watches[rank]->subscribe(log[rank]->events());
    }
  }
  std::vector<std::unique_ptr<EventLog>> log;  // outlives the watches
  std::vector<std::unique_ptr<FailureDetector>> watches;
};

TEST(FailureDetector, LeaveIsReportedToAllRanks) {
  Job job(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) job.watches[rank]->leave(Rank{rank}, "");
  for (auto& failure_detector : job.watches) EXPECT_TRUE(failure_detector->wait_all_left(60));
  EXPECT_THAT(job.log[0]->sorted(2), ElementsAre("1 left", "2 left"));
  EXPECT_THAT(job.log[1]->sorted(2), ElementsAre("0 left", "2 left"));
  EXPECT_THAT(job.log[2]->sorted(2), ElementsAre("0 left", "1 left"));
}

TEST(FailureDetector, WaitsForRanksThatStay) {
  Job job(3);
  job.watches[0]->leave(Rank{0}, "");
  job.watches[1]->leave(Rank{1}, "");
  EXPECT_FALSE(job.watches[0]->wait_all_left(0.1));
  EXPECT_FALSE(job.watches[1]->wait_all_left(0.1));
}

TEST(FailureDetector, EndedProcessIsReportedToAllRanks) {
  Job job(4);
  job.watches[1].reset();
  for (std::size_t const rank : {0, 2, 3}) EXPECT_THAT(job.log[rank]->sorted(1), ElementsAre(kProcessEnded));
}

TEST(FailureDetector, EndOfRankZeroIsDetected) {
  Job job(3);
  job.watches[0].reset();
  for (std::size_t const rank : {1, 2}) {
    EXPECT_THAT(job.log[rank]->sorted(1), ElementsAre("0 lost: its process ended"));
    EXPECT_FALSE(job.watches[rank]->wait_all_left(60)) << "without rank 0 no rank learns whether the other one leaves";
  }
}

TEST(FailureDetector, CauseIsSentBeforeProcessEnds) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    Job job(3);
    job.watches[1]->leave(Rank{1}, "its disk is full");
    job.watches[1].reset();
    EXPECT_THAT(job.log[0]->sorted(1), ElementsAre("1 lost: its disk is full"));
    EXPECT_THAT(job.log[2]->sorted(1), ElementsAre("1 lost: its disk is full"));
  }
}

TEST(FailureDetector, LossIsReportedOnceWithItsCause) {
  Job job(4);
  job.watches[2]->leave(Rank{1}, "the link to it broke");
  job.watches[2].reset();
  job.watches[3]->leave(Rank{1}, "other words");
  job.watches[3].reset();
  EXPECT_THAT(job.log[0]->sorted(1), ElementsAre("1 lost: the link to it broke"));
  // Rank 1, which others have reported as lost, gets their reasons.
  EXPECT_THAT(job.log[1]->sorted(2), ElementsAre("2 lost: it considers this rank lost: the link to it broke",
                                                 "3 lost: it considers this rank lost: other words"));
  job.watches[1].reset();
  EXPECT_TRUE(job.watches[0]->wait_all_left(60));
  EXPECT_THAT(job.log[0]->sorted(1), ElementsAre("1 lost: the link to it broke"));
}

TEST(FailureDetector, ErrorAfterLeaveIsReported) {
  Job job(3);
  job.watches[1]->leave(Rank{1}, "");
  job.watches[1]->leave(Rank{1}, "it could not save");
  job.watches[1]->leave(Rank{1}, "a second error is not reported");
  job.watches[1].reset();
  for (std::size_t const rank : {0, 2}) {
    EXPECT_THAT(job.log[rank]->in_order(2), ElementsAre("1 left", "1 lost: it could not save"));
  }
}

TEST(FailureDetector, LateSubscriberGetsEarlierEvents) {
  auto outcomes = join_all(2);
  outcomes[1].joined.failure_detector->leave(Rank{1}, "an early end");
  EXPECT_TRUE(outcomes[0].joined.failure_detector->wait_all_left(60));
  EventLog log;
  outcomes[0].joined.failure_detector->subscribe(log.events());
  EXPECT_THAT(log.sorted(1), ElementsAre("1 lost: an early end"));
  outcomes.clear();
}

TEST(FailureDetector, ListenerMayCallLeave) {
  Job job(3);
  FailureDetector& failure_detector = *job.watches[0];
  job.watches[0]->subscribe(
      {.lost = [&](Rank rank, std::string const& why) { failure_detector.leave(rank, why); }, .left = {}});
  job.watches[1].reset();
  EXPECT_THAT(job.log[2]->sorted(1), ElementsAre(kProcessEnded));
  job.watches[2]->leave(Rank{1}, "its process ended");
  EXPECT_TRUE(job.watches[0]->wait_all_left(60));
  EXPECT_TRUE(job.watches[2]->wait_all_left(60));
}

TEST(FailureDetector, HeartbeatsKeepRanksAlive) {
  Job job(3, 0.4);  // heartbeats every 0.1 s
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  for (auto& log : job.log) EXPECT_THAT(log->sorted(0), IsEmpty());
}

TEST(FailureDetector, SingleRankWaitsForNobody) {
  Job job(1);
  EXPECT_TRUE(job.watches[0]->wait_all_left(0));
}

// Rank 0 of three; the test sends the messages of rank 1, and receives those for rank 2.
struct Forged {
  Forged() {
    std::vector<Connection> links;
    links.emplace_back(Socket(), ConnectionSide::kRankZero);
    for (Connection* other : {&one, &two}) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
      links.emplace_back(Socket(ends[0]), ConnectionSide::kRankZero);
      *other = Connection(Socket(ends[1]), ConnectionSide::kOther);
    }
    zero = make_failure_detector(Rank{0}, 3, std::move(links), {.peer_timeout_s = 60});
    zero->subscribe(log.events());
  }
  // Returns the next membership update that rank 2 receives.
  MembershipUpdate next_update_for_two() {
    for (;;) {
      auto const frame = two.next();
      if (frame && frame->kind == FrameKind::kMembershipUpdate) return decode_membership_update(frame->body);
      if (!two.exchange().empty()) return {};
    }
  }
  Connection one{Socket(), ConnectionSide::kOther}, two{Socket(), ConnectionSide::kOther};
  EventLog log;
  std::unique_ptr<FailureDetector> zero;
};

TEST(FailureDetector, InvalidMessageMakesSenderLost) {
  auto const wrong = [](std::function<void(Connection&)> const& send) {
    Forged job;
    send(job.one);
    (void)job.one.exchange();
    EXPECT_THAT(job.log.in_order(1), ElementsAre("1 lost: it sent an invalid message"));
    MembershipUpdate const update = job.next_update_for_two();
    EXPECT_EQ(update.rank, Rank{1});
    EXPECT_EQ(update.why, "it sent an invalid message");
  };
  wrong([](Connection& one) { one.put_plaintext(std::string(100, '\0')); });
  wrong([](Connection& one) { one.put_plaintext(std::string(100, '\xff')); });
  wrong([](Connection& one) { one.put(FrameKind::kStart, ""); });
  wrong([](Connection& one) { one.put(FrameKind::kMembershipUpdate, "short"); });
  wrong([](Connection& one) {
    one.put(FrameKind::kMembershipUpdate, encode(MembershipUpdate{.by = Rank{2}, .rank = Rank{2}, .why = "forged"}));
  });
  wrong([](Connection& one) {
    one.put(FrameKind::kMembershipUpdate, encode(MembershipUpdate{.by = Rank{1}, .rank = Rank{3}, .why = "nobody"}));
  });
}

std::vector<std::string> changes_of(Membership& membership) {
  std::vector<std::string> lines;
  for (auto const& event : membership.take_changes()) {
    lines.push_back(std::to_string(number(event.rank)) + (event.why.empty() ? " left" : " lost: " + event.why));
  }
  return lines;
}

TEST(Membership, LossIsAttributedToRankAtFault) {
  Membership membership(Rank{0}, 4);
  membership.apply({.by = Rank{1}, .rank = Rank{2}, .why = "silent"});
  EXPECT_THAT(changes_of(membership), ElementsAre("2 lost: silent"));
  EXPECT_FALSE(membership.is_alive(Rank{1}));
  membership.apply({.by = Rank{2}, .rank = Rank{2}, .why = "its process ended"});
  membership.apply({.by = Rank{1}, .rank = Rank{1}, .why = "its process ended"});
  EXPECT_THAT(changes_of(membership), IsEmpty());
  EXPECT_FALSE(membership.is_alone());
  membership.apply({.by = Rank{3}, .rank = Rank{3}});
  EXPECT_TRUE(membership.is_alone());
}

TEST(Membership, ReporterOfLeftRankIsAtFault) {
  Membership membership(Rank{0}, 3);
  membership.apply({.by = Rank{1}, .rank = Rank{1}});
  membership.apply({.by = Rank{2}, .rank = Rank{1}, .why = "it has left"});
  EXPECT_THAT(changes_of(membership), ElementsAre("1 left", "2 lost: it has left"));
}

}  // namespace
}  // namespace gpups::test::failure_detector_test
