// SPDX-License-Identifier: Apache-2.0
// A rank is killed, or hangs, during sums of large arrays: all other ranks get an error in time, which names the rank.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/rank_processes.hpp"

namespace gpups::test::lost_in_allreduce_test {
namespace {

using Clock = std::chrono::steady_clock;  // the same for all processes of the machine

constexpr int kRanks = 4;
constexpr Rank kVictim{2};
constexpr double kPeerTimeout_s = 2;

// Sums arrays, several at once, until a rank is lost. It must be the victim.
void sum_until_lost(Group const& group, std::size_t elements) {
  Store const store(group, {.threads = 1});
  auto stream = store.make_stream();
  std::vector<std::vector<std::int64_t>> arrays(3, std::vector<std::int64_t>(elements, 1));
  std::vector<CollectiveRequest> open;
  try {
    for (;;) {
      for (auto& values : arrays) open.push_back(group.begin_allreduce(stream, values));
      for (auto const& request : std::exchange(open, {})) group.wait_allreduce(stream, request);
    }
  } catch (PeerError const& error) {
    if (error.peer() != kVictim) throw;
  }
}

// Sends the signal after this time, at the start or during a sum. All other ranks must report the loss within the
// limit.
void lose(int signal, std::size_t elements, std::chrono::milliseconds after, double limit_s) {
  int ready_pipe[2];
  ASSERT_EQ(pipe(ready_pipe), 0);
  auto const pids = start_ranks(kRanks, {.peer_timeout_s = kPeerTimeout_s}, [&](Group const& group) {
    char const is_ready = 'r';
    if (group.rank() == kVictim) (void)!write(ready_pipe[1], &is_ready, 1);
    sum_until_lost(group, elements);
  });
  char byte;
  ASSERT_EQ(read(ready_pipe[0], &byte, 1), 1);
  std::this_thread::sleep_for(after);
  pid_t const victim = pids[number(kVictim)];
  auto const lost_at = Clock::now();
  ASSERT_EQ(kill(victim, signal), 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == static_cast<int>(number(kVictim))) continue;
    EXPECT_TRUE(wait_success(pids[static_cast<std::size_t>(rank)])) << "rank " << rank;
  }
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - lost_at).count(), limit_s);
  kill(victim, SIGKILL);
  EXPECT_FALSE(wait_success(victim));
  ::close(ready_pipe[0]);
  ::close(ready_pipe[1]);
}

TEST(LostInAllreduce, AllRanksReportKilledRank) {
  for (int const ms : {0, 3, 10, 31, 77, 150}) {
    lose(SIGKILL, std::size_t{1} << (ms % 2 == 0 ? 22 : 12), std::chrono::milliseconds(ms), 15);
  }
}

TEST(LostInAllreduce, AllRanksReportHangingRankInTime) {
  for (int const ms : {20, 60}) lose(SIGSTOP, std::size_t{1} << 22, std::chrono::milliseconds(ms), kPeerTimeout_s + 15);
}

// Waits for a sum for which one rank returns without a call. Its name is in every error; peer() may be the rank that
// has noticed it first.
void sum_without_victim(Group const& group) {
  if (group.rank() == kVictim) return;
  Stream stream(Device::host(), 1);
  std::vector<std::int64_t> values(10, 1);
  try {
    group.wait_allreduce(stream, group.begin_allreduce(stream, values));
    ADD_FAILURE() << "the sum lacks the terms of a rank";
  } catch (PeerError const& error) {
    std::string const left = "rank " + std::to_string(number(kVictim)) + " has left";
    if (std::string(error.what()).find(left) == std::string::npos) throw;
  }
}

// Without the wait timeout, which is minutes.
TEST(LostInAllreduce, AllRanksReportRankThatReturnedAtOnce) {
  for (pid_t const pid : start_ranks(kRanks, {}, sum_without_victim)) EXPECT_TRUE(wait_success(pid));
  run_ranks(Group::threads(kRanks), sum_without_victim);
}

}  // namespace
}  // namespace gpups::test::lost_in_allreduce_test
