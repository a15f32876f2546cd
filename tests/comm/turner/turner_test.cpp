// SPDX-License-Identifier: Apache-2.0
// Who turns a rank's protocol, and when its communication thread does.
#include "comm/turner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "comm/bell.hpp"
#include "comm/doorbell.hpp"
#include "comm/turner/alarm.hpp"
#include "comm/turner/threaded.hpp"

namespace gpups::comm {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(Alarm, RingsOnceItsTimeHasCome) {
  Alarm alarm;
  auto const at = Clock::now() + milliseconds(5);
  alarm.set(at);
  alarm.wait();
  EXPECT_GE(Clock::now(), at);
}

TEST(Alarm, RingsAtOnceForATimeThatIsOver) {
  Alarm alarm;
  for (auto const at : {Alarm::Time{}, Clock::now() - milliseconds(1)}) {
    alarm.set(at);
    alarm.wait();
  }
}

TEST(Alarm, IsPutOffWhileAThreadWaits) {
  for (bool was_in_time = false; !was_in_time;) {
    Alarm alarm;
    auto const first = Clock::now() + milliseconds(20), second = first + milliseconds(20);
    alarm.set(first);
    Clock::time_point rung;
    std::thread waits([&] {
      alarm.wait();
      rung = Clock::now();
    });
    std::this_thread::sleep_for(milliseconds(5));
    alarm.set(second);
    was_in_time = Clock::now() < first;  // else it may have rung before
    waits.join();
    EXPECT_GE(rung, was_in_time ? second : first);
  }
}

// By the cores of its rank: with one, the communication thread stands back for longer.
class ThreadedTurner : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Turner> turner_ =
      make_threaded_turner([] { return std::make_unique<Doorbell>(); }, [] { return GetParam(); });
};

// Has nobody sleep for long: a communication thread that does not turn stands back.
class BriefBell final : public Bell {
 public:
  void ring() override {}
  void wait() override { std::this_thread::sleep_for(milliseconds(1)); }
};

class CommunicationThread : public testing::TestWithParam<int> {
 protected:
  // Until it has turned: nobody else does, and nobody asks it to.
  static void await_turn(std::atomic<int> const& turns) {
    auto const end = Clock::now() + std::chrono::seconds(60);
    for (int const before = turns; turns == before;) {
      ASSERT_LT(Clock::now(), end);
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Turner> turner_ =
      make_threaded_turner([] { return std::make_unique<BriefBell>(); }, [] { return GetParam(); });
};

INSTANTIATE_TEST_SUITE_P(Cores, ThreadedTurner, testing::Values(1, 2), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Cores, CommunicationThread, testing::Values(1, 2), testing::PrintToStringParamName());

TEST_P(ThreadedTurner, WaitGivesUpWhenNothingHappens) {
  turner_->start([] { return false; });
  EXPECT_FALSE(turner_->wait([] { return false; }, 0.01));
  EXPECT_TRUE(turner_->wait([] { return true; }, 0));
}

TEST(Turner, TurnsThatDoSomethingKeepAWaitAlive) {
  auto const turner = make_threaded_turner([] { return std::make_unique<Doorbell>(); }, [] { return 2; });
  std::atomic<int> turns = 0;
  turner->start([&] {
    std::this_thread::sleep_for(milliseconds(400));
    return ++turns > 0;
  });
  EXPECT_TRUE(turner->wait([&] { return turns >= 4; }, 1));
  turner->stop();
  int const last = turns;
  EXPECT_FALSE(turner->wait([] { return false; }, 0.01));
  EXPECT_EQ(turns, last);
}

TEST_P(ThreadedTurner, AWakeIsATurnAndALookAtWhatIsAwaited) {
  std::atomic<int> said = 0, heard = 0;
  turner_->start([&] {
    heard = said.load();
    return false;
  });
  std::thread other([&] {
    while (said < 1000) {
      ++said;
      turner_->wake();
      while (heard < said) std::this_thread::yield();
    }
  });
  EXPECT_TRUE(turner_->wait([&] { return heard == 1000; }, 60));
  other.join();
  turner_->stop();
}

// As where a turn's work takes up a task that posts something.
TEST_P(ThreadedTurner, ATurnCanAskForAnotherSoon) {
  std::atomic<int> turns = 0;
  turner_->start([&] {
    if (++turns < 100) turner_->turn_soon();
    return false;
  });
  turner_->turn_soon();  // on this thread; who is to follow may be asleep
  while (turns < 100) std::this_thread::yield();
  turner_->stop();
}

TEST_P(ThreadedTurner, AWakeIsALookWhereNothingTurns) {
  std::atomic<bool> flag = false;
  std::thread other([&] {
    flag = true;
    turner_->wake();
  });
  EXPECT_TRUE(turner_->wait([&] { return flag.load(); }, 60));
  other.join();
}

TEST_P(ThreadedTurner, CanStartAgain) {
  for (int i = 0; i < 3; ++i) {
    std::atomic<bool> turned = false;
    turner_->start([&] { return !turned.exchange(true); });
    EXPECT_TRUE(turner_->wait([&] { return turned.load(); }, 60));
    turner_->stop();
    turner_->stop();
  }
}

TEST_P(ThreadedTurner, TurnsNoMoreOnceStopped) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> turns = 0;
    turner_->start([&] { return ++turns < 0; });
    EXPECT_TRUE(turner_->wait([&] { return turns > i % 3; }, 60));
    turner_->stop();
    int const last = turns;
    EXPECT_FALSE(turner_->wait([] { return false; }, 0));
    EXPECT_EQ(turns, last);
  }
}

TEST_P(CommunicationThread, StandsBackWhileAnotherTurns) {
  auto const me = std::this_thread::get_id();
  int before = -1;  // turns of the communication thread when this one has taken up turning
  std::atomic<int> its = 0;
  turner_->start([&] {
    if (std::this_thread::get_id() != me) return ++its < 0;
    if (before < 0) before = its;
    return true;
  });
  auto const end = Clock::now() + milliseconds(20);
  EXPECT_TRUE(turner_->wait([&] { return Clock::now() > end; }, 60));
  turner_->stop();
  EXPECT_LE(its - before, 1);  // it may have been about to turn
}

// Who has waited need not ask for it.
TEST_P(CommunicationThread, TurnsAfterAWait) {
  std::atomic<int> turns = 0;
  turner_->start([&] { return ++turns < 0; });
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(turner_->wait([before = turns.load(), &turns] { return turns > before; }, 60));
    if (i % 10 == 0) await_turn(turns);
  }
  for (int i = 0; i < 10; ++i) {
    turner_->turn_soon();
    await_turn(turns);
  }
  turner_->stop();
}

// So long that it sleeps until who waits is done.
TEST_P(CommunicationThread, TurnsAfterALongWait) {
  std::atomic<int> turns = 0;
  std::atomic<bool> over = false;
  turner_->start([&] { return ++turns < 0; });
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    over = true;
    turner_->wake();
  });
  EXPECT_TRUE(turner_->wait([&] { return over.load(); }, 60));
  await_turn(turns);
  other.join();
  turner_->stop();
}

// As threads that wait at the same time do.
TEST_P(CommunicationThread, TurnsForThoseWhoWaitOn) {
  std::atomic<int> turns = 0;
  turner_->start([&] { return ++turns < 0; });
  for (int i = 0; i < 5; ++i) {
    std::thread longer(
        [&, until = turns + 2000] { EXPECT_TRUE(turner_->wait([&] { return turns >= until || turns < 0; }, 60)); });
    EXPECT_TRUE(turner_->wait([&, until = turns + 20] { return turns >= until; }, 60));
    turns += 2000;
    longer.join();
  }
  turner_->stop();
}

}  // namespace
}  // namespace gpups::comm
