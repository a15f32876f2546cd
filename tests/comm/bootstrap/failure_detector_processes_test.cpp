// SPDX-License-Identifier: Apache-2.0
// The failure detector with processes that are killed or stopped.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/comm/bootstrap/failure_detector_fixture.hpp"
#include "tests/comm/bootstrap/join_fixture.hpp"

namespace gpups::test::failure_detector_processes_test {
namespace {

using namespace gpups::comm;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Ranks 1 and up, each a process that joins, and waits for the first event or a signal.
class Children {
 public:
  Children(int size, int port, double peer_timeout_s) {
    for (int rank = 1; rank < size; ++rank) {
      pid_t const pid = fork();
      if (pid == 0) run(rank, size, port, peer_timeout_s);
      pids_.push_back(pid);
    }
  }
  ~Children() {
    for (pid_t const pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  void signal(int rank, int number) { kill(pids_[static_cast<std::size_t>(rank - 1)], number); }

 private:
  [[noreturn]] static void run(int rank, int size, int port, double peer_timeout_s) {
    auto request = request_of(rank, size, port);
    request.failure_detector.peer_timeout_s = peer_timeout_s;
    try {
      JoinResult const joined = wait_join(request);
      // A rank that receives an event leaves, so that the test knows that it has received one.
      EventLog log;
      joined.failure_detector->subscribe(log.events());
      log.in_order(1);
      joined.failure_detector->leave(request.launch.rank, "");
      joined.failure_detector->wait_all_left(60);
    } catch (std::exception const&) {
    }
    _exit(0);
  }
  std::vector<pid_t> pids_;
};

JoinResult join_as_rank_zero(int size, int port, double peer_timeout_s) {
  auto request = request_of(0, size, port);
  request.failure_detector.peer_timeout_s = peer_timeout_s;
  return wait_join(request);
}

TEST(FailureDetectorProcesses, KilledProcessIsLost) {
  int const port = free_port();
  Children children(4, port, 60);
  EventLog log;
  JoinResult const joined = join_as_rank_zero(4, port, 60);
  joined.failure_detector->subscribe(log.events());
  children.signal(2, SIGKILL);
  EXPECT_THAT(log.in_order(1)[0], "2 lost: its process ended");
  EXPECT_THAT(log.sorted(3), ElementsAre("1 left", "2 lost: its process ended", "3 left"));
}

TEST(FailureDetectorProcesses, StoppedProcessIsLost) {
  int const port = free_port();
  Children children(4, port, 4);
  EventLog log;
  JoinResult const joined = join_as_rank_zero(4, port, 4);
  joined.failure_detector->subscribe(log.events());
  children.signal(1, SIGSTOP);
  EXPECT_EQ(log.in_order(1)[0], "1 lost: no heartbeat from it for 4 s: it hangs, or its link is cut");
  EXPECT_THAT(log.sorted(3), ElementsAre(HasSubstr("1 lost"), "2 left", "3 left"));
}

TEST(FailureDetectorProcesses, SilenceOfAllRanksSuspectsOwnLink) {
  int const port = free_port();
  Children children(4, port, 4);
  EventLog log;
  JoinResult const joined = join_as_rank_zero(4, port, 4);
  joined.failure_detector->subscribe(log.events());
  for (int rank = 1; rank < 4; ++rank) children.signal(rank, SIGSTOP);
  for (std::string const& line : log.sorted(3)) EXPECT_THAT(line, HasSubstr("the link of rank 0's own machine"));
}

TEST(FailureDetectorProcesses, ShortPauseIsTolerated) {
  int const port = free_port();
  Children children(3, port, 20);
  EventLog log;
  JoinResult const joined = join_as_rank_zero(3, port, 20);
  joined.failure_detector->subscribe(log.events());
  children.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  children.signal(1, SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_THAT(log.sorted(0), IsEmpty());
}

// All processes are stopped for longer than the peer timeout, as when a machine is suspended: no rank is lost.
TEST(FailureDetectorProcesses, PauseOfAllRanksIsTolerated) {
  pid_t const job = fork();
  if (job == 0) {
    setpgid(0, 0);
    int const port = free_port();
    Children children(3, port, 4);
    EventLog log;
    JoinResult const joined = join_as_rank_zero(3, port, 4);
    joined.failure_detector->subscribe(log.events());
    raise(SIGSTOP);  // this process; the test stops the others
    std::this_thread::sleep_for(std::chrono::seconds(2));
    auto const lines = log.in_order(0);
    for (std::string const& line : lines) fmt::print(stderr, "{}\n", line);
    children.signal(1, SIGKILL);
    children.signal(2, SIGKILL);
    _exit(lines.empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(job, &status, WUNTRACED), job);
  ASSERT_TRUE(WIFSTOPPED(status));
  kill(-job, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(6));
  kill(-job, SIGCONT);
  ASSERT_EQ(waitpid(job, &status, 0), job);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a rank was reported as lost";
}

}  // namespace
}  // namespace gpups::test::failure_detector_processes_test
