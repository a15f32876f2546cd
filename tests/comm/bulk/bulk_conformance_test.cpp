// SPDX-License-Identifier: Apache-2.0
// Tests that every bulk transport must pass, on the host and between all devices of the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/group/all_transports.hpp"
#include "gpups/array.hpp"
#include "gpups/error.hpp"
#include "kernels/base/build_config.hpp"
#if GPUPS_HAS_UCX
#include "tests/support/bulk_routes.hpp"
#endif

namespace gpups::comm {

void PrintTo(BulkTransportFactory const& entry, std::ostream* out) { *out << entry.name; }

namespace {

using Ends = std::vector<std::unique_ptr<BulkTransport>>;

class BulkConformance : public testing::TestWithParam<BulkTransportFactory> {
 protected:
  static Rank rank(std::size_t i) { return Rank{static_cast<std::uint32_t>(i)}; }
  // No case needs more than four ends.
  void SetUp() override {
    std::string const lacks = GetParam().lacks(4);
    if (!lacks.empty()) GTEST_SKIP() << lacks;
  }
  Ends make(int ranks) const { return GetParam().make(ranks); }
};

std::vector<std::uint8_t> bytes(std::size_t size, std::size_t which) {
  std::vector<std::uint8_t> content(size);
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<std::uint8_t>(i * 31 + (i >> 8) + which);
  return content;
}

// Lets all ends progress until the transfer of `end` has ended.
void await(Ends const& ends, BulkTransport& end, Transfer transfer) {
  while (!end.done(transfer)) {
    for (auto const& each : ends) each->progress();
  }
}

std::vector<Device> devices() {
  std::vector<Device> all{Device::host()};
  for (int i = 0; i < cuda_device_count(); ++i) all.push_back(Device::cuda(i));
  return all;
}

TEST_P(BulkConformance, AnySizeArrivesBetweenAnyDevices) {
  Ends const ends = make(2);
  for (Device const from : devices()) {
    for (Device const to : devices()) {
      Stream sending(from, 1), receiving(to, 1);
      std::uint64_t tag = 0;
      for (std::size_t const size :
           {0UL, 1UL, 13UL, kEagerBytesMax - 1, kEagerBytesMax, kEagerBytesMax + 1, (7UL << 20) + 5}) {
        Array<std::uint8_t> const source = to_device(sending, bytes(size, tag));
        Array<std::uint8_t> const target(to, size);
        Transfer const sent = ends[0]->send(sending, rank(1), tag, source.data(), size);
        Transfer const received = ends[1]->receive_into(receiving, rank(0), tag, target.data(), size);
        await(ends, *ends[1], received);
        await(ends, *ends[0], sent);
        EXPECT_TRUE(to_host<std::uint8_t>(receiving, target) == bytes(size, tag++))
            << size << " bytes from " << to_string(from) << " to " << to_string(to);
      }
    }
  }
}

TEST_P(BulkConformance, EitherSideMayStartFirst) {
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  auto const source = bytes(1000, 1);
  std::vector<std::uint8_t> target(1000);
  Transfer const received = ends[1]->receive_into(stream, rank(0), 5, target.data(), 1000);
  for (int i = 0; i < 10; ++i) ends[1]->progress();
  EXPECT_FALSE(ends[1]->done(received));
  Transfer const sent = ends[0]->send(stream, rank(1), 5, source.data(), 1000);
  await(ends, *ends[1], received);
  await(ends, *ends[0], sent);
  EXPECT_EQ(target, source);
}

TEST_P(BulkConformance, LargeSendWaitsForReceiver) {
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  auto const source = bytes(kEagerBytesMax + 1, 1);
  Transfer const sent = ends[0]->send(stream, rank(1), 0, source.data(), source.size());
  for (int i = 0; i < 100; ++i) {
    for (auto const& end : ends) end->progress();
    EXPECT_FALSE(ends[0]->done(sent));
  }
}

TEST_P(BulkConformance, DoneIsReportedOnce) {
  Ends const ends = make(1);
  Stream stream(Device::host(), 1);
  Transfer const sent = ends[0]->send(stream, rank(0), 0, nullptr, 0);
  Transfer const received = ends[0]->receive_into(stream, rank(0), 0, nullptr, 0);
  EXPECT_NE(sent, received);
  await(ends, *ends[0], received);
  await(ends, *ends[0], sent);
  EXPECT_FALSE(ends[0]->done(sent));
  EXPECT_FALSE(ends[0]->done(received));
}

TEST_P(BulkConformance, TakeDoneReturnsAllEndedTransfers) {
  constexpr std::size_t kTransfers = 3;
  std::vector<std::uint8_t> const source(10);
  std::vector<std::uint8_t> target(10);
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  std::vector<Transfer> sent, ended;
  for (std::size_t tag = 0; tag < kTransfers; ++tag) {
    sent.push_back(ends[0]->send(stream, rank(1), tag, source.data(), 10));
    ends[1]->receive_into(stream, rank(0), tag, target.data(), 10);
  }
  while (ended.size() < kTransfers) {
    for (auto const& end : ends) end->progress();
    for (Transfer const transfer : ends[0]->take_done()) ended.push_back(transfer);
  }
  std::sort(ended.begin(), ended.end());
  EXPECT_EQ(ended, sent);
  for (Transfer const transfer : sent) EXPECT_FALSE(ends[0]->done(transfer));
}

TEST_P(BulkConformance, MatchesTransfersByPairAndTag) {
  constexpr std::size_t kRanks = 4, kTags = 5;
  Ends const ends = make(kRanks);
  Stream stream(Device::host(), 1);
  std::vector<std::vector<std::uint8_t>> sources, targets(kRanks * kRanks * kTags, std::vector<std::uint8_t>(100));
  std::vector<std::pair<BulkTransport*, Transfer>> open;
  for (std::size_t i = 0; i < targets.size(); ++i) sources.push_back(bytes(100, i));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    std::size_t const from = i % kRanks, to = i / kRanks % kRanks, tag = i / kRanks / kRanks;
    open.emplace_back(ends[from].get(), ends[from]->send(stream, rank(to), tag, sources[i].data(), 100));
    std::size_t const j = targets.size() - 1 - i, from_j = j % kRanks, to_j = j / kRanks % kRanks;
    open.emplace_back(ends[to_j].get(),
                      ends[to_j]->receive_into(stream, rank(from_j), j / kRanks / kRanks, targets[j].data(), 100));
  }
  for (auto const& [end, transfer] : open) await(ends, *end, transfer);
  EXPECT_EQ(targets, sources);
}

// More transfers than may wait at the receiver: all calls of the sender succeed, and all data arrive.
TEST_P(BulkConformance, SlowReceiverGetsAllData) {
  constexpr std::size_t kTransfers = 20000, kLargest = 9000;
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  auto const source = bytes(kLargest + 256, 1);
  auto const part = [&](std::size_t tag) { return std::pair(source.data() + tag % 256, tag * 7919 % kLargest); };
  for (std::size_t tag = 0; tag < kTransfers; ++tag) {
    ends[0]->send(stream, rank(1), tag, part(tag).first, part(tag).second);
  }
  std::vector<std::uint8_t> target(kLargest);
  for (std::size_t tag = 0; tag < kTransfers; ++tag) {
    auto const [data, size] = part(tag);
    Transfer const received = ends[1]->receive_into(stream, rank(0), tag, target.data(), size);
    await(ends, *ends[1], received);
    ASSERT_TRUE(std::equal(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(size), data)) << tag;
  }
  std::size_t sent = 0;
  while (sent < kTransfers) {
    for (auto const& end : ends) end->progress();
    sent += ends[0]->take_done().size();
  }
}

TEST_P(BulkConformance, TagMayBeReused) {
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  for (std::size_t i = 0; i < 50; ++i) {
    auto const source = bytes(64, i);
    std::vector<std::uint8_t> target(64);
    Transfer const sent = ends[0]->send(stream, rank(1), 9, source.data(), 64);
    Transfer const received = ends[1]->receive_into(stream, rank(0), 9, target.data(), 64);
    await(ends, *ends[0], sent);
    await(ends, *ends[1], received);
    EXPECT_EQ(target, source);
  }
}

TEST_P(BulkConformance, WrongSizeIsReportedOnBothSides) {
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  std::vector<std::uint8_t> const source(100);
  std::vector<std::uint8_t> target(200, 1);
  ends[0]->send(stream, rank(1), 0, source.data(), 100);
  ends[1]->receive_into(stream, rank(0), 0, target.data(), 64);
  for (std::size_t const i : {1, 0}) {
    try {
      for (;;) ends[i]->progress();
    } catch (PeerError const& error) {
      EXPECT_EQ(error.peer(), rank(1 - i));
      EXPECT_NE(std::string(error.what()).find("100"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("64"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(target, std::vector<std::uint8_t>(200, 1));
}

TEST_P(BulkConformance, MemoryIsRequestedWhenDataArrives) {
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  std::vector<std::uint8_t> target;
  int allocations = 0;
  Transfer const received = ends[1]->receive(stream, rank(0), 0, 100, [&] {
    ++allocations;
    target.resize(100);
    return target.data();
  });
  for (int i = 0; i < 10; ++i) ends[1]->progress();
  EXPECT_EQ(allocations, 0);
  auto const source = bytes(100, 1);
  Transfer const sent = ends[0]->send(stream, rank(1), 0, source.data(), 100);
  await(ends, *ends[1], received);
  await(ends, *ends[0], sent);
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(target, source);
}

TEST_P(BulkConformance, FalseSizeTakesNoMemory) {
  std::vector<std::uint8_t> const source(100);
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  bool allocations = false;
  ends[1]->receive(stream, rank(0), 0, std::size_t{1} << 60, [&]() -> void* {
    allocations = true;
    return nullptr;
  });
  ends[0]->send(stream, rank(1), 0, source.data(), 100);
  EXPECT_THROW(
      {
        for (;;) ends[1]->progress();
      },
      PeerError);
  EXPECT_FALSE(allocations);
}

TEST_P(BulkConformance, SecondTransferWithSameTagIsSenderError) {
  std::vector<std::uint8_t> const source(100);
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  for (int i = 0; i < 2; ++i) ends[0]->send(stream, rank(1), 7, source.data(), 100);
  try {
    for (;;) ends[1]->progress();
  } catch (PeerError const& error) {
    EXPECT_EQ(error.peer(), rank(0));
  }
}

TEST_P(BulkConformance, CallsOnArrival) {
  Ends const ends = make(2);
  Stream stream(Device::host(), 1);
  std::atomic<bool> woken[2] = {};
  for (std::size_t i : {0, 1}) ends[i]->on_arrival([&woken, i] { woken[i] = true; });
  auto const source = bytes(10, 1);
  std::vector<std::uint8_t> target(10);
  Transfer const received = ends[1]->receive_into(stream, rank(0), 0, target.data(), 10);
  woken[1] = false;
  Transfer const sent = ends[0]->send(stream, rank(1), 0, source.data(), 10);
  while (!woken[1]) ends[0]->progress();
  await(ends, *ends[1], received);
  while (!woken[0]) ends[1]->progress();
  await(ends, *ends[0], sent);
  for (auto const& end : ends) end->on_arrival(nullptr);
}

// Offers and requests of an end are withdrawn when it is destroyed: the transfer at the other end never completes.
TEST_P(BulkConformance, DestroyedSenderWithdrawsItsOffer) {
  Ends ends = make(2);
  Stream stream(Device::host(), 1);
  auto source = bytes(1 << 20, 1);
  std::vector<std::uint8_t> target(source.size());
  ends[0]->send(stream, rank(1), 0, source.data(), source.size());
  ends[0].reset();
  Transfer const received = ends[1]->receive_into(stream, rank(0), 0, target.data(), target.size());
  for (int i = 0; i < 100; ++i) ends[1]->progress();
  EXPECT_FALSE(ends[1]->done(received));
}

TEST_P(BulkConformance, DestroyedReceiverWithdrawsItsRequest) {
  Ends ends = make(2);
  Stream stream(Device::host(), 1);
  auto const source = bytes(1 << 20, 1);
  std::vector<std::uint8_t> target(source.size());
  ends[1]->receive_into(stream, rank(0), 0, target.data(), target.size());
  ends[1].reset();
  Transfer const sent = ends[0]->send(stream, rank(1), 0, source.data(), source.size());
  for (int i = 0; i < 100; ++i) ends[0]->progress();
  EXPECT_FALSE(ends[0]->done(sent));
  EXPECT_EQ(target, std::vector<std::uint8_t>(source.size()));
}

// An end may be destroyed with open transfers: the other end must not use its memory any more.
TEST_P(BulkConformance, EndWithOpenTransfersMayBeDestroyed) {
  for (std::size_t const gone : {0, 1}) {
    Ends ends = make(2);
    Stream stream(Device::host(), 1);
    auto source = std::make_unique<std::vector<std::uint8_t>>(bytes(1 << 20, 1));
    auto target = std::make_unique<std::vector<std::uint8_t>>(source->size());
    ends[0]->send(stream, rank(1), 0, source->data(), source->size());
    ends[1]->receive_into(stream, rank(0), 0, target->data(), target->size());
    ends[gone].reset();
    gone == 0 ? source.reset() : target.reset();
    for (int i = 0; i < 100; ++i) ends[1 - gone]->progress();
  }
}

// An end is destroyed while the other end may be copying from it.
TEST_P(BulkConformance, DestructorWaitsForCopies) {
  for (int round = 0; round < 20; ++round) {
    Ends ends = make(2);
    Stream stream(Device::host(), 1);
    constexpr std::size_t kSize = 1 << 20;
    std::vector<std::uint8_t> target(kSize);
    Transfer const received = ends[1]->receive_into(stream, rank(0), 0, target.data(), kSize);
    std::atomic<bool> gone = false;
    std::thread receiver([&] {
      while (!gone) ends[1]->progress();
    });
    {
      auto const source = bytes(kSize, 7);
      ends[0]->send(stream, rank(1), 0, source.data(), kSize);
      for (int i = 0; i < round; ++i) std::this_thread::yield();
      ends[0].reset();
    }
    gone = true;
    receiver.join();
    if (ends[1]->done(received)) {
      EXPECT_TRUE(target == bytes(kSize, 7));
    }
  }
}

TEST_P(BulkConformance, AllRanksExchangeConcurrently) {
  constexpr std::size_t kRanks = 4, kSteps = 50;
  Ends const ends = make(kRanks);
  auto const run = [&](std::size_t me) {
    BulkTransport& end = *ends[me];
    Stream stream(Device::host(), 1);
    for (std::size_t step = 0; step < kSteps; ++step) {
      std::size_t const size = step * 997;
      std::vector<std::vector<std::uint8_t>> sources, targets(kRanks, std::vector<std::uint8_t>(size));
      std::vector<Transfer> open;
      for (std::size_t other = 0; other < kRanks; ++other) sources.push_back(bytes(size, 16 * me + other));
      for (std::size_t other = 0; other < kRanks; ++other) {
        open.push_back(end.send(stream, rank(other), step, sources[other].data(), size));
        open.push_back(end.receive_into(stream, rank(other), step, targets[other].data(), size));
      }
      while (!open.empty()) {
        if (!end.progress()) std::this_thread::yield();
        std::erase_if(open, [&](Transfer transfer) { return end.done(transfer); });
      }
      for (std::size_t other = 0; other < kRanks; ++other) EXPECT_TRUE(targets[other] == bytes(size, 16 * other + me));
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < kRanks; ++me) threads.emplace_back([&, me] { run(me); });
  for (std::thread& thread : threads) thread.join();
}

#if GPUPS_HAS_UCX
constexpr BulkTransportFactory kRoutes[] = {{"by_fabric", test::lacks_nothing, test::make_by_fabric},
                                            {"staged", test::lacks_nothing, test::make_staged}};
INSTANTIATE_TEST_SUITE_P(Routes, BulkConformance, testing::ValuesIn(kRoutes),
                         [](auto const& entry) { return std::string(entry.param.name); });
#endif

INSTANTIATE_TEST_SUITE_P(All, BulkConformance,
                         testing::ValuesIn(all_bulk_transports().begin(), all_bulk_transports().end()),
                         [](auto const& entry) { return std::string(entry.param.name); });

}  // namespace
}  // namespace gpups::comm
