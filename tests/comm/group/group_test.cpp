// SPDX-License-Identifier: Apache-2.0
// Groups of threads: ranks, messages, and how run_ranks() reports failures.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <system_error>

#include "comm/group/group_impl.hpp"
#include "gpups/error.hpp"
#include "gpups/group.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::group_test {
namespace {

constexpr char const* kMessage = "x";

// A rank whose protocol counts arriving messages.
class Counter {
 public:
  explicit Counter(Group const& group) : impl_(group.impl()) {
    impl_.transport->on_arrival([this] { impl_.driver->wake(); });
    impl_.driver->start([this] { return progress(); });
  }
  ~Counter() {
    impl_.driver->stop();
    impl_.transport->on_arrival(nullptr);
  }
  void wait_for(int messages) {
    EXPECT_TRUE(impl_.driver->wait([&] { return arrived_ >= messages || lost_; }, 60));
    if (lost_) throw PeerError(Rank{0}, error_);
  }

 private:
  bool progress() {
    if (lost_) return false;
    try {
      bool any = false;
      while (auto const message = impl_.transport->receive()) {
        any = true;
        if (message->body == kMessage) ++arrived_;  // a rank that has left has closed its channels by messages too
      }
      return any;
    } catch (PeerError const& error) {
      error_ = error.what();
      return lost_ = true;
    }
  }

  Group::Impl& impl_;
  std::atomic<int> arrived_ = 0;
  std::atomic<bool> lost_ = false;
  std::string error_;  // written before lost_
};

// Exchanges `rounds` messages with every rank.
void exchange(Group const& group, int rounds) {
  Counter counter(group);
  for (int round = 1; round <= rounds; ++round) {
    for (int to = 0; to < group.size(); ++to) {
      EXPECT_TRUE(group.impl().transport->send(Rank{static_cast<std::uint32_t>(to)}, kMessage));
    }
    counter.wait_for(round * group.size());
  }
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
    EXPECT_EQ(group[rank].location().local_rank, static_cast<int>(rank));
    EXPECT_EQ(group[rank].location().local_ranks, 3);
  }
}

TEST(Group, RanksExchangeMessages) {
  run_ranks(Group::threads(4), [](Group group) { exchange(group, 100); });
}

TEST(Group, RejectsInvalidRankCounts) {
  EXPECT_THROW(Group::threads(0), Error);
  EXPECT_THROW(Group::threads(-1), Error);
  EXPECT_THROW(Group::threads(1025), Error);
  EXPECT_EQ(Group::threads(1024).size(), 1024U);
}

TEST(RunRanks, RejectsIncompleteGroup) {
  auto const group = Group::threads(3);
  EXPECT_THROW(run_ranks({group[0], group[1]}, [](Group) {}), Error);
  EXPECT_THROW(run_ranks({}, [](Group) {}), Error);
}

TEST(RunRanks, RejectsRanksOfDifferentGroups) {
  auto const one = Group::threads(2), other = Group::threads(2);
  test::expect_error([&] { run_ranks({one[0], other[1]}, [](Group) {}); }, {"different groups"});
  test::expect_error([&] { run_ranks({one[1], one[1]}, [](Group) {}); }, {"rank 1 twice"});
  run_ranks({one[1], one[0]}, [](Group) {});  // in any order
}

TEST(RunRanks, RethrowsFailureAndEndsOtherRanks) {
  std::atomic<int> peer_errors = 0;
  try {
    run_ranks(Group::threads(4), [&](Group group) {
      if (group.rank() == Rank{2}) throw std::runtime_error("the disk is full");
      try {
        exchange(group, 1000000);
      } catch (PeerError const& error) {
        EXPECT_NE(std::string(error.what()).find("it failed: the disk is full"), std::string::npos) << error.what();
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

// While the object lives, new threads get stacks that are too large for any machine.
class HugeStacks {
 public:
  HugeStacks() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~HugeStacks() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(RunRanks, ReportsThreadsThatCannotStart) {
  auto const group = Group::threads(3);
  std::atomic<int> begun = 0;
  {
    HugeStacks const huge;
    test::expect_error([&] { run_ranks(group, [&](Group) { ++begun; }); },
                       {"the threads of 3 ranks cannot be created"});
  }
  EXPECT_EQ(begun, 0);
  run_ranks(group, [&](Group) { ++begun; });
  EXPECT_EQ(begun, 3);
}

TEST(RunRanks, ReportsThreadFailureInsideRank) {
  auto const body = [](Group group) {
    if (group.rank() == Rank{1})
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    exchange(group, 1000000);
  };
  test::expect_error([&] { run_ranks(Group::threads(2), body); }, {"the threads of 2 ranks cannot be created"});
}

}  // namespace
}  // namespace gpups::group_test
