// SPDX-License-Identifier: Apache-2.0
// Coroutines over a communicator: messages, exceptions and the end of tasks.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/memory_communicator.hpp"

namespace gpups::test::communicator_test {
namespace {

using comm::Bytes;
using comm::Communicator;
using comm::CoTask;

Bytes word(std::uint64_t value) {
  Bytes bytes(Device::host(), sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::uint64_t word_in(Bytes const& bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
Rank other(Communicator const& comm, std::uint32_t distance) {
  return Rank{(number(comm.me()) + distance) % static_cast<std::uint32_t>(comm.ranks())};
}

// Sums the values of all ranks in a ring.
CoTask<std::uint64_t> sum_around(Communicator& comm, std::uint64_t mine) {
  std::uint64_t sum = mine, passed = mine;
  for (int step = 1; step < comm.ranks(); ++step) {
    comm.send(other(comm, 1), word(passed));
    passed = word_in(co_await comm.receive(other(comm, static_cast<std::uint32_t>(comm.ranks()) - 1), 8));
    sum += passed;
  }
  co_return sum;
}

TEST(Communicator, RingSumIsCorrect) {
  for (int const ranks : {1, 2, 3, 5, 8}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      MemoryCommunicators communicators(ranks, seed);
      std::vector<std::uint64_t> sums;
      communicators.run(
          [&](Communicator& comm) -> CoTask<> { sums.push_back(co_await sum_around(comm, 1U << number(comm.me()))); });
      EXPECT_EQ(sums, std::vector<std::uint64_t>(static_cast<std::size_t>(ranks), (1U << ranks) - 1));
      EXPECT_EQ(communicators.sent().messages, static_cast<std::size_t>(ranks * (ranks - 1)));
      EXPECT_EQ(communicators.sent(0).bytes, 8 * static_cast<std::size_t>(ranks - 1));
    }
  }
}

// Two concurrent tasks of one rank share its communicator: messages are matched in the order of calls.
TEST(Communicator, StartedTasksRunConcurrently) {
  MemoryCommunicators communicators(3);
  communicators.run([](Communicator& comm) -> CoTask<> {
    auto first = sum_around(comm, 1), second = sum_around(comm, 1);
    first.start();
    EXPECT_FALSE(first.done());
    EXPECT_EQ(co_await first, 3U);
    EXPECT_TRUE(first.done());
    EXPECT_EQ(co_await second, 3U);
  });
}

TEST(Communicator, FixedSizeMessagesKeepOrder) {
  MemoryCommunicators communicators(2, 3);
  communicators.run([](Communicator& comm) -> CoTask<> {
    auto const mine = std::make_shared<Bytes>(word(number(comm.me())));
    auto const its = std::make_shared<Bytes>(Device::host(), 8);
    auto const none = std::make_shared<Bytes>();
    comm.send_fixed(other(comm, 1), mine->view(), mine);
    comm.send(other(comm, 1), word(7));
    auto sent = comm.send_fixed(other(comm, 1), none->view(), none);
    auto known = comm.receive_fixed(other(comm, 1), its->view(), its);
    auto received = comm.receive(other(comm, 1), 100);
    auto empty = comm.receive_fixed(other(comm, 1), none->view(), none);
    EXPECT_EQ(word_in(co_await received), 7U);
    co_await known;
    EXPECT_EQ(word_in(*its), 1 - number(comm.me()));
    co_await empty;
    co_await sent;
  });
}

CoTask<int> throws_after(Communicator& comm) {
  (void)co_await sum_around(comm, 1);
  throw std::runtime_error("the disk is on fire");
}

TEST(Communicator, AwaitRethrowsExceptionOfTask) {
  MemoryCommunicators communicators(2);
  int caught = 0;
  communicators.run([&](Communicator& comm) -> CoTask<> {
    try {
      (void)co_await throws_after(comm);
    } catch (std::runtime_error const& error) {
      EXPECT_EQ(std::string(error.what()), "the disk is on fire");
      ++caught;
    }
  });
  EXPECT_EQ(caught, 2);
  EXPECT_THROW(communicators.run([](Communicator& comm) -> CoTask<> { (void)co_await throws_after(comm); }),
               std::runtime_error);
}

// Counts its destruction in `gone`.
struct Guard {
  int& gone;
  ~Guard() { ++gone; }
};
CoTask<> waits_for_ever(Communicator& comm, int& gone) {
  Guard const guard{gone};
  (void)co_await comm.receive(other(comm, 1), 8);
}

TEST(Communicator, AbandonedRunDestroysItsTasks) {
  int gone = 0;
  MemoryCommunicators communicators(2);
  EXPECT_THROW(communicators.run([&](Communicator& comm) -> CoTask<> {
    Guard const guard{gone};
    co_await waits_for_ever(comm, gone);
  }),
               std::logic_error);
  EXPECT_EQ(gone, 4);
}

TEST(Communicator, RejectsMessageLargerThanExpected) {
  MemoryCommunicators communicators(2);
  expect_error(
      [&] {
        communicators.run([](Communicator& comm) -> CoTask<> {
          comm.send(other(comm, 1), word(1));
          (void)co_await comm.receive(other(comm, 1), 7);
        });
      },
      {"sends 8 bytes where 7 are expected"});
}

}  // namespace
}  // namespace gpups::test::communicator_test
