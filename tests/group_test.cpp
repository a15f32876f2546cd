// SPDX-License-Identifier: Apache-2.0
// Groups of threads: who they are, how they wait for each other, and what run_ranks makes of failures.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "comm/group_impl.hpp"
#include "gpups/error.hpp"
#include "gpups/group.hpp"

namespace gpups {
namespace {

// Exchanges `rounds` messages with every other rank, with a turn that counts what has come.
void exchange(Group group, int rounds) {
  auto& [transport, payload, turner, local_rank, local_ranks, run] = group.impl();
  std::atomic<int> arrived = 0;
  std::string lost;
  std::atomic<bool> failed = false;
  transport->on_arrival([&t = *turner] { t.wake(); });
  turner->start([&, &transport = transport] {
    if (failed) return false;
    try {
      bool any = false;
      while (transport->receive()) {
        ++arrived;
        any = true;
      }
      return any;
    } catch (PeerError const& error) {
      lost = error.what();
      return failed = true;
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    for (int to = 0; to < group.size(); ++to) {
      EXPECT_TRUE(transport->send(Rank{static_cast<std::uint32_t>(to)}, "x"));
    }
    EXPECT_TRUE(turner->wait([&] { return arrived >= round * group.size() || failed; }, 60));
    if (failed) throw PeerError(Rank{0}, lost);
  }
  turner->stop();
  transport->on_arrival(nullptr);
}

TEST(Group, AloneIsRankZeroOfOne) {
  Group const group = Group::alone();
  EXPECT_EQ(group.rank(), Rank{0});
  EXPECT_EQ(group.size(), 1);
  run_ranks({group}, [](Group g) { exchange(g, 10); });
}

TEST(Group, ThreadsAreRankedInOrder) {
  auto const group = Group::threads(3);
  ASSERT_EQ(group.size(), 3U);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(group[rank].rank(), Rank{rank});
    EXPECT_EQ(group[rank].size(), 3);
    EXPECT_EQ(group[rank].impl().local_rank, static_cast<int>(rank));
    EXPECT_EQ(group[rank].impl().local_ranks, 3);
  }
}

TEST(Group, RanksReachEachOther) {
  run_ranks(Group::threads(4), [](Group group) { exchange(group, 100); });
}

TEST(Group, NumberOfRanksIsChecked) {
  EXPECT_THROW(Group::threads(0), Error);
  EXPECT_THROW(Group::threads(-1), Error);
  EXPECT_THROW(Group::threads(1025), Error);
  EXPECT_EQ(Group::threads(1024).size(), 1024U);
}

TEST(RunRanks, WantsTheWholeGroup) {
  auto const group = Group::threads(3);
  EXPECT_THROW(run_ranks({group[0], group[1]}, [](Group) {}), Error);
  EXPECT_THROW(run_ranks({}, [](Group) {}), Error);
}

TEST(RunRanks, AFailureEndsTheOthersAndIsWhatIsThrown) {
  std::atomic<int> peer_errors = 0;
  try {
    run_ranks(Group::threads(4), [&](Group group) {
      if (group.rank() == Rank{2}) throw std::runtime_error("the disk is full");
      try {
        exchange(group, 1000000);
      } catch (PeerError const& error) {
        EXPECT_NE(std::string(error.what()).find("rank 2 failed: the disk is full"), std::string::npos) << error.what();
        ++peer_errors;
        throw;
      }
    });
    FAIL() << "nothing was thrown";
  } catch (std::runtime_error const& error) {
    EXPECT_STREQ(error.what(), "the disk is full");
  }
  EXPECT_EQ(peer_errors, 3);
}

TEST(RunRanks, WhatIsNoExceptionIsPassedOnToo) {
  EXPECT_THROW(run_ranks(Group::threads(2),
                         [](Group group) {
                           if (group.rank() == Rank{1}) throw 5;
                           exchange(group, 1000000);
                         }),
               int);
}

TEST(Turner, WaitGivesUpWhenNothingHappens) {
  Group const group = Group::alone();
  comm::Turner& turner = *group.impl().turner;
  turner.start([] { return false; });
  EXPECT_FALSE(turner.wait([] { return false; }, 0.01));
  EXPECT_TRUE(turner.wait([] { return true; }, 0));
}

TEST(Turner, TurnsThatDoSomethingKeepAWaitAlive) {
  Group const group = Group::alone();
  comm::Turner& turner = *group.impl().turner;
  std::atomic<int> turns = 0;
  turner.start([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return ++turns > 0;
  });
  EXPECT_TRUE(turner.wait([&] { return turns >= 4; }, 1));
  turner.stop();
  int const last = turns;
  EXPECT_FALSE(turner.wait([] { return false; }, 0.01));
  EXPECT_EQ(turns, last);
}

TEST(Turner, AWakeIsATurnAndALookAtWhatIsAwaited) {
  Group const group = Group::alone();
  comm::Turner& turner = *group.impl().turner;
  std::atomic<int> turns = 0;
  turner.start([&] { return ++turns < 0; });
  std::atomic<bool> flag = false;
  std::thread other([&] {
    flag = true;
    turner.wake();
  });
  EXPECT_TRUE(turner.wait([&] { return flag && turns > 0; }, 60));
  other.join();
}

}  // namespace
}  // namespace gpups
