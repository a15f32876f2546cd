// SPDX-License-Identifier: Apache-2.0
// Which thread makes progress for a rank, and when its communication thread does.
#include "comm/progress/progress_driver.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "comm/base/wakeup.hpp"
#include "comm/progress/backoff.hpp"

namespace gpups::comm::progress_driver_test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(Timer, FiresAtItsTime) {
  Timer timer;
  auto const at = Clock::now() + milliseconds(5);
  timer.set(at);
  timer.wait();
  EXPECT_GE(Clock::now(), at);
}

TEST(Timer, FiresAtOnceForPastTime) {
  Timer timer;
  for (auto const at : {Timer::Time{}, Clock::now() - milliseconds(1)}) {
    timer.set(at);
    timer.wait();
  }
}

TEST(Timer, CanBePostponedDuringWait) {
  for (bool was_in_time = false; !was_in_time;) {
    Timer timer;
    auto const first = Clock::now() + milliseconds(20), second = first + milliseconds(20);
    timer.set(first);
    Clock::time_point fired;
    std::thread waits([&] {
      timer.wait();
      fired = Clock::now();
    });
    std::this_thread::sleep_for(milliseconds(5));
    timer.set(second);
    was_in_time = Clock::now() < first;  // else it may have fired before
    waits.join();
    EXPECT_GE(fired, was_in_time ? second : first);
  }
}

// The parameter is the number of cores of the rank: with one, the communication thread backs off for longer.
class ThreadedDriver : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<ProgressDriver> driver_ =
      make_threaded_driver([] { return std::make_unique<LocalWakeupEvent>(); }, [] { return GetParam(); });
};

// Ends every sleep soon, so that a communication thread that makes no progress must be backing off.
class BriefEvent final : public WakeupEvent {
 public:
  void signal() override {}
  void wait() override { std::this_thread::sleep_for(milliseconds(1)); }
};

class CommunicationThread : public testing::TestWithParam<int> {
 protected:
  // Waits until the communication thread has made progress. No other thread does, and none requests it.
  static void wait_for_progress(std::atomic<int> const& calls) {
    auto const end = Clock::now() + std::chrono::seconds(60);
    for (int const before = calls; calls == before;) {
      ASSERT_LT(Clock::now(), end);
      std::this_thread::yield();
    }
  }

  std::unique_ptr<ProgressDriver> driver_ =
      make_threaded_driver([] { return std::make_unique<BriefEvent>(); }, [] { return GetParam(); });
};

INSTANTIATE_TEST_SUITE_P(Cores, ThreadedDriver, testing::Values(1, 2), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Cores, CommunicationThread, testing::Values(1, 2), testing::PrintToStringParamName());

TEST_P(ThreadedDriver, WaitTimesOutWithoutProgress) {
  driver_->start([] { return false; });
  EXPECT_FALSE(driver_->wait([] { return false; }, 0.01));
  EXPECT_TRUE(driver_->wait([] { return true; }, 0));
}

TEST(ProgressDriver, ProgressExtendsWait) {
  auto const driver = make_threaded_driver([] { return std::make_unique<LocalWakeupEvent>(); }, [] { return 2; });
  std::atomic<int> calls = 0;
  driver->start([&] {
    std::this_thread::sleep_for(milliseconds(400));
    return ++calls > 0;
  });
  EXPECT_TRUE(driver->wait([&] { return calls >= 4; }, 1));
  driver->stop();
  int const last = calls;
  EXPECT_FALSE(driver->wait([] { return false; }, 0.01));
  EXPECT_EQ(calls, last);
}

TEST_P(ThreadedDriver, WakeMakesProgressAndChecksCondition) {
  std::atomic<int> sent = 0, received = 0;
  driver_->start([&] {
    received = sent.load();
    return false;
  });
  std::thread other([&] {
    while (sent < 1000) {
      ++sent;
      driver_->wake();
      while (received < sent) std::this_thread::yield();
    }
  });
  EXPECT_TRUE(driver_->wait([&] { return received == 1000; }, 60));
  other.join();
  driver_->stop();
}

// As when progress runs a task that posts another task.
TEST_P(ThreadedDriver, ProgressMayRequestMoreProgress) {
  std::atomic<int> calls = 0;
  driver_->start([&] {
    if (++calls < 100) driver_->progress_soon();
    return false;
  });
  driver_->progress_soon();  // on this thread; the communication thread may be asleep
  while (calls < 100) std::this_thread::yield();
  driver_->stop();
}

TEST_P(ThreadedDriver, WakeChecksConditionWhileStopped) {
  std::atomic<bool> flag = false;
  std::thread other([&] {
    flag = true;
    driver_->wake();
  });
  EXPECT_TRUE(driver_->wait([&] { return flag.load(); }, 60));
  other.join();
}

TEST_P(ThreadedDriver, CanRestart) {
  for (int i = 0; i < 3; ++i) {
    std::atomic<bool> turned = false;
    driver_->start([&] { return !turned.exchange(true); });
    EXPECT_TRUE(driver_->wait([&] { return turned.load(); }, 60));
    driver_->stop();
    driver_->stop();
  }
}

TEST_P(ThreadedDriver, MakesNoProgressAfterStop) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> calls = 0;
    driver_->start([&] { return ++calls < 0; });
    EXPECT_TRUE(driver_->wait([&] { return calls > i % 3; }, 60));
    driver_->stop();
    int const last = calls;
    EXPECT_FALSE(driver_->wait([] { return false; }, 0));
    EXPECT_EQ(calls, last);
  }
}

TEST_P(CommunicationThread, BacksOffWhileAnotherThreadWaits) {
  auto const me = std::this_thread::get_id();
  int before = -1;  // progress calls of the communication thread when this thread began to make progress
  std::atomic<int> its = 0;
  driver_->start([&] {
    if (std::this_thread::get_id() != me) return ++its < 0;
    if (before < 0) before = its;
    return true;
  });
  auto const end = Clock::now() + milliseconds(20);
  EXPECT_TRUE(driver_->wait([&] { return Clock::now() > end; }, 60));
  driver_->stop();
  EXPECT_LE(its - before, 1);  // it may have been about to make progress
}

// A thread that has waited need not request it.
TEST_P(CommunicationThread, ResumesProgressAfterWait) {
  std::atomic<int> calls = 0;
  driver_->start([&] { return ++calls < 0; });
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(driver_->wait([before = calls.load(), &calls] { return calls > before; }, 60));
    if (i % 10 == 0) wait_for_progress(calls);
  }
  for (int i = 0; i < 10; ++i) {
    driver_->progress_soon();
    wait_for_progress(calls);
  }
  driver_->stop();
}

// The wait is so long that the communication thread sleeps until it ends.
TEST_P(CommunicationThread, ResumesProgressAfterLongWait) {
  std::atomic<int> calls = 0;
  std::atomic<bool> over = false;
  driver_->start([&] { return ++calls < 0; });
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    over = true;
    driver_->wake();
  });
  EXPECT_TRUE(driver_->wait([&] { return over.load(); }, 60));
  wait_for_progress(calls);
  other.join();
  driver_->stop();
}

// Two threads wait at the same time. When one of them is done, the other must get progress.
TEST_P(CommunicationThread, RemainingWaitersGetProgress) {
  std::atomic<int> calls = 0;
  driver_->start([&] { return ++calls < 0; });
  for (int i = 0; i < 5; ++i) {
    std::thread longer(
        [&, until = calls + 2000] { EXPECT_TRUE(driver_->wait([&] { return calls >= until || calls < 0; }, 60)); });
    EXPECT_TRUE(driver_->wait([&, until = calls + 20] { return calls >= until; }, 60));
    calls += 2000;
    longer.join();
  }
  driver_->stop();
}

}  // namespace
}  // namespace gpups::comm::progress_driver_test
