// SPDX-License-Identifier: Apache-2.0
// Tests that every transport must pass.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "comm/group/all_transports.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

void PrintTo(TransportFactory const& entry, std::ostream* out) { *out << entry.name; }

namespace {

using Ends = std::vector<std::unique_ptr<Transport>>;

class TransportConformance : public testing::TestWithParam<TransportFactory> {
 protected:
  static Rank rank(std::size_t i) { return Rank{static_cast<std::uint32_t>(i)}; }
  Ends make(int ranks) const { return GetParam().make(ranks); }
};

// Returns bytes that depend on the message `which` and on their position.
std::string bytes(std::size_t size, std::size_t which) {
  std::string body(size, '\0');
  for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 31 + (i >> 8) + which);
  return body;
}

TransportMessage await(Transport& end) {
  for (;;) {
    if (auto message = end.receive()) return *std::move(message);
    std::this_thread::yield();
  }
}

std::string error_of(std::function<void()> const& call, Rank peer) {
  try {
    call();
  } catch (PeerError const& error) {
    EXPECT_EQ(error.peer(), peer);
    return error.what();
  }
  ADD_FAILURE() << "no PeerError";
  return {};
}

// Receives until there is an error.
std::string await_error(Transport& end, Rank peer) {
  return error_of(
      [&] {
        for (;;) end.receive();
      },
      peer);
}

TEST_P(TransportConformance, EndsReturnRankAndSize) {
  Ends const ends = make(3);
  ASSERT_EQ(ends.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ends[i]->rank(), rank(i));
    EXPECT_EQ(ends[i]->size(), 3);
  }
}

TEST_P(TransportConformance, AnySizeArrivesUnchanged) {
  Ends const ends = make(2);
  for (std::size_t const size : {0UL, 1UL, 7UL, 65535UL, 65536UL, 65537UL, 5UL << 20, kMessageBytesMax}) {
    std::string const body = bytes(size, 3);
    while (!ends[0]->send(rank(1), body)) EXPECT_FALSE(ends[0]->receive());
    TransportMessage const message = await(*ends[1]);
    EXPECT_EQ(message.from, rank(0));
    EXPECT_TRUE(message.body == body) << size;
  }
  EXPECT_FALSE(ends[1]->receive());
}

TEST_P(TransportConformance, RankCanSendToItself) {
  Ends const ends = make(2);
  ASSERT_TRUE(ends[1]->send(rank(1), "me"));
  TransportMessage const message = await(*ends[1]);
  EXPECT_EQ(message.from, rank(1));
  EXPECT_EQ(message.body, "me");
}

TEST_P(TransportConformance, MessagesOfPairKeepOrder) {
  Ends const ends = make(3);
  for (int i = 0; i < 100; ++i) {
    for (std::size_t from : {0, 1}) {
      ASSERT_TRUE(ends[from]->send(rank(2), bytes(static_cast<std::size_t>(i) % 7 * 100, from) + std::to_string(i)));
    }
  }
  int next[2] = {};
  for (int i = 0; i < 200; ++i) {
    TransportMessage const message = await(*ends[2]);
    std::size_t const from = number(message.from);
    auto const n = static_cast<std::size_t>(next[from]++);
    EXPECT_EQ(message.body, bytes(n % 7 * 100, from) + std::to_string(n));
  }
}

TEST_P(TransportConformance, FullQueueIsReportedAndRecovers) {
  Ends const ends = make(3);
  std::size_t sent = 0, received = 0;
  while (ends[0]->send(rank(1), std::to_string(sent))) ASSERT_LT(++sent, 1000000U);
  EXPECT_GT(sent, 0U);
  EXPECT_TRUE(ends[2]->send(rank(1), "of another pair"));
  EXPECT_TRUE(ends[0]->send(rank(2), "of another pair"));

  std::atomic<bool> woken = false;
  ends[0]->on_arrival([&] { woken = true; });
  while (received < sent) {
    TransportMessage const message = await(*ends[1]);
    if (message.from != rank(0)) continue;
    EXPECT_EQ(message.body, std::to_string(received++));
  }
  while (!woken) std::this_thread::yield();  // the sender is woken when there is room
  EXPECT_TRUE(ends[0]->send(rank(1), "again"));
}

TEST_P(TransportConformance, LargeMessagesFillQueue) {
  Ends const ends = make(2);
  int sent = 0;
  while (ends[0]->send(rank(1), std::string(kMessageBytesMax / 2, 'x'))) ASSERT_LT(++sent, 100);
  EXPECT_GT(sent, 0);
  await(*ends[1]);
  while (sent-- > 1) await(*ends[1]);
  EXPECT_TRUE(ends[0]->send(rank(1), std::string(kMessageBytesMax, 'x')));
}

TEST_P(TransportConformance, CallsOnArrival) {
  Ends const ends = make(2);
  std::atomic<int> woken = 0;
  ends[1]->on_arrival([&] { ++woken; });
  EXPECT_TRUE(ends[0]->send(rank(1), "x"));
  await(*ends[1]);
  EXPECT_GT(woken, 0);

  ends[1]->on_arrival(nullptr);
  woken = 0;
  EXPECT_TRUE(ends[0]->send(rank(1), "x"));
  await(*ends[1]);
  EXPECT_EQ(woken, 0);
}

TEST_P(TransportConformance, LeaveIsNoError) {
  Ends const ends = make(3);
  EXPECT_TRUE(ends[1]->send(rank(0), "bye"));
  ends[1]->leave();
  EXPECT_EQ(await(*ends[0]).body, "bye");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(ends[0]->receive());
  EXPECT_TRUE(ends[2]->send(rank(0), "still here"));
  EXPECT_EQ(await(*ends[0]).body, "still here");
}

TEST_P(TransportConformance, SendToRankThatLeftThrows) {
  Ends const ends = make(2);
  ends[1]->leave();
  auto const send_until_known = [&] {
    for (;;) ends[0]->send(rank(1), "x");
  };
  EXPECT_NE(error_of(send_until_known, rank(1)).find("rank 1"), std::string::npos);
}

TEST_P(TransportConformance, ErrorComesAfterEarlierMessages) {
  Ends const ends = make(3);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ends[1]->send(rank(0), std::to_string(i)));
  ends[1]->fail(rank(1), "no memory");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(await(*ends[0]).body, std::to_string(i));
  for (std::size_t other : {0, 2}) {
    std::string const error = await_error(*ends[other], rank(1));
    EXPECT_NE(error.find("rank 1 is lost"), std::string::npos) << error;
    EXPECT_NE(error_of([&] { ends[other]->send(rank(1), "x"); }, rank(1)).find("no memory"), std::string::npos);
  }
}

TEST_P(TransportConformance, ErrorMayFollowLeave) {
  Ends const ends = make(2);
  ends[1]->leave();
  ends[1]->fail(rank(1), "too late");
  ends[1]->leave();
  EXPECT_NE(await_error(*ends[0], rank(1)).find("too late"), std::string::npos);
}

TEST_P(TransportConformance, DestroyedEndIsLost) {
  Ends ends = make(2);
  ends[1].reset();
  EXPECT_NE(await_error(*ends[0], rank(1)).find("rank 1"), std::string::npos);
}

TEST_P(TransportConformance, LeaveWakesWaitingSender) {
  Ends const ends = make(2);
  while (ends[0]->send(rank(1), "x")) {
  }
  std::atomic<bool> woken = false;
  ends[0]->on_arrival([&] { woken = true; });
  ends[1]->leave();
  while (!woken) std::this_thread::yield();
  EXPECT_THROW(ends[0]->send(rank(1), "x"), PeerError);
}

TEST_P(TransportConformance, ManyRanksReachEachOther) {
  constexpr std::size_t kRanks = 40;
  Ends const ends = make(kRanks);
  for (std::size_t from = 0; from < kRanks; ++from) {
    for (std::size_t to = 0; to < kRanks; ++to) {
      ASSERT_TRUE(ends[from]->send(rank(to), std::to_string(1000 * from + to)));
    }
  }
  for (std::size_t to = 0; to < kRanks; ++to) {
    std::vector<bool> seen(kRanks);
    for (std::size_t i = 0; i < kRanks; ++i) {
      TransportMessage const message = await(*ends[to]);
      std::size_t const from = number(message.from);
      EXPECT_EQ(message.body, std::to_string(1000 * from + to));
      EXPECT_FALSE(seen[from]);
      seen[from] = true;
    }
    EXPECT_FALSE(ends[to]->receive());
  }
}

// Every rank sends to every rank from its own thread, through queues that fill up.
TEST_P(TransportConformance, AllRanksExchangeConcurrently) {
  constexpr std::size_t kRanks = 4, kMessages = 2000;
  Ends const ends = make(kRanks);
  auto const run = [&](Transport& end) {
    std::vector<std::size_t> sent(kRanks), received(kRanks);
    std::size_t open = 2 * kRanks;
    while (open > 0) {
      for (std::size_t to = 0; to < kRanks; ++to) {
        if (sent[to] == kMessages) continue;
        if (end.send(rank(to), bytes(sent[to] % 300, sent[to])) && ++sent[to] == kMessages) --open;
      }
      while (auto const message = end.receive()) {
        std::size_t& n = received[number(message->from)];
        ASSERT_TRUE(message->body == bytes(n % 300, n)) << n;
        if (++n == kMessages) --open;
      }
    }
  };
  std::vector<std::thread> threads;
  for (auto const& end : ends) threads.emplace_back([&] { run(*end); });
  for (std::thread& thread : threads) thread.join();
}

// A rank fails while all others are sending to it and to each other.
TEST_P(TransportConformance, FailureReachesAllRanks) {
  constexpr std::size_t kRanks = 4;
  Ends const ends = make(kRanks);
  std::atomic<int> informed = 0;
  auto const run = [&](Transport& end) {
    if (end.rank() == rank(2)) {
      for (int i = 0; i < 500; ++i) end.send(rank(static_cast<std::size_t>(i) % kRanks), "x");
      return end.fail(rank(2), "by design");
    }
    try {
      for (std::size_t i = 0;; ++i) {
        end.send(rank(i % kRanks), "x");
        end.receive();
      }
    } catch (PeerError const& error) {
      EXPECT_EQ(error.peer(), rank(2));
      EXPECT_NE(std::string(error.what()).find("by design"), std::string::npos) << error.what();
      ++informed;
    }
  };
  std::vector<std::thread> threads;
  for (auto const& end : ends) threads.emplace_back([&] { run(*end); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(informed, 3);
}

INSTANTIATE_TEST_SUITE_P(All, TransportConformance, testing::ValuesIn(all_transports().begin(), all_transports().end()),
                         [](auto const& entry) { return std::string(entry.param.name); });

}  // namespace
}  // namespace gpups::comm
