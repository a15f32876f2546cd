// SPDX-License-Identifier: Apache-2.0
// The watch over processes that are killed or stopped.
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

namespace gpups::test {
namespace {

using namespace gpups::comm;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Ranks 1 and up, each a process that joins, says so and does nothing until it is told to end.
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
      // Who hears of a loss ends regularly, so that the test sees that it has heard.
      Heard heard;
      joined.failure_detector->subscribe(heard.events());
      heard.in_order(1);
      joined.failure_detector->leave(request.launch.rank, "");
      joined.failure_detector->wait_all_left(60);
    } catch (std::exception const&) {
    }
    _exit(0);
  }
  std::vector<pid_t> pids_;
};

JoinResult join_as_zero(int size, int port, double peer_timeout_s) {
  auto request = request_of(0, size, port);
  request.failure_detector.peer_timeout_s = peer_timeout_s;
  return wait_join(request);
}

TEST(WatchProcesses, AKilledOneIsLost) {
  int const port = free_port();
  Children children(4, port, 60);
  Heard heard;
  JoinResult const joined = join_as_zero(4, port, 60);
  joined.failure_detector->subscribe(heard.events());
  children.signal(2, SIGKILL);
  EXPECT_THAT(heard.in_order(1)[0], "2 lost: its process ended");
  EXPECT_THAT(heard.sorted(3), ElementsAre("1 left", "2 lost: its process ended", "3 left"));
}

TEST(WatchProcesses, AStoppedOneIsLost) {
  int const port = free_port();
  Children children(4, port, 4);
  Heard heard;
  JoinResult const joined = join_as_zero(4, port, 4);
  joined.failure_detector->subscribe(heard.events());
  children.signal(1, SIGSTOP);
  EXPECT_EQ(heard.in_order(1)[0], "1 lost: no heartbeat from it for 4 s: it hangs, or its link is cut");
  EXPECT_THAT(heard.sorted(3), ElementsAre(HasSubstr("1 lost"), "2 left", "3 left"));
}

TEST(WatchProcesses, WhereNobodyIsHeardTheOwnLinkIsSuspected) {
  int const port = free_port();
  Children children(4, port, 4);
  Heard heard;
  JoinResult const joined = join_as_zero(4, port, 4);
  joined.failure_detector->subscribe(heard.events());
  for (int rank = 1; rank < 4; ++rank) children.signal(rank, SIGSTOP);
  for (std::string const& line : heard.sorted(3)) EXPECT_THAT(line, HasSubstr("the link of rank 0's own machine"));
}

TEST(WatchProcesses, AShortStopIsForgiven) {
  int const port = free_port();
  Children children(3, port, 20);
  Heard heard;
  JoinResult const joined = join_as_zero(3, port, 20);
  joined.failure_detector->subscribe(heard.events());
  children.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  children.signal(1, SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_THAT(heard.sorted(0), IsEmpty());
}

// All are stopped for longer than a rank may be silent, as when a machine is suspended, and nobody is lost.
TEST(WatchProcesses, APauseOfAllIsForgiven) {
  pid_t const job = fork();
  if (job == 0) {
    setpgid(0, 0);
    int const port = free_port();
    Children children(3, port, 4);
    Heard heard;
    JoinResult const joined = join_as_zero(3, port, 4);
    joined.failure_detector->subscribe(heard.events());
    raise(SIGSTOP);  // this process; the test stops the others
    std::this_thread::sleep_for(std::chrono::seconds(2));
    auto const lines = heard.in_order(0);
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
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "somebody was taken for lost";
}

}  // namespace
}  // namespace gpups::test
