// SPDX-License-Identifier: Apache-2.0
// The memory of many ranks in one process grows linearly with their number, with almost no quadratic part, and matches
// the plan.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "cache/protocol/engine.hpp"
#include "gpups/gpups.hpp"
#include "tests/support/allocated_bytes.hpp"

namespace gpups::test::memory_of_ranks_test {
namespace {

constexpr std::size_t kDim = 8;
constexpr std::uint64_t kKeys = 40;

struct Bytes {
  double stores = 0;   // of all ranks, after their first barrier
  double trained = 0;  // after some steps
  double planned = 0;  // on one rank
};

Bytes bytes_of(int ranks) {
  Bytes bytes;
  double const before = allocated_bytes();
  run_ranks(Group::threads(ranks), [&](Group const& group) {
    bool const first = group.rank() == Rank{0};
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = kDim, .expected_rows = kKeys});
    auto stream = store.make_stream();
    store.wait_barrier();
    if (first) bytes.stores = allocated_bytes() - before;
    store.wait_barrier();
    std::deque<PreparedBatch> ahead;
    auto const prepare = [&](Clock clock) {
      std::vector<Key> keys;
      for (std::uint64_t i = 0; i < 8; ++i) {
        keys.push_back(Key{(number(group.rank()) * 7 + static_cast<std::uint64_t>(number(clock)) * 3 + i) % kKeys});
      }
      TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys), .offsets = {}};
      ahead.push_back(store.prepare(stream, clock, {&part, 1}, 1));
    };
    for (std::int64_t t = 0; t < 4; ++t) prepare(Clock{t});
    while (!ahead.empty()) {
      auto const batch = ahead.front();
      ahead.pop_front();
      store.wait_ready(batch);
      Matrix<float> const rows(Device::host(), batch.rows(0), kDim);
      MatrixView<float> const view(rows);
      store.pull(stream, batch, {&view, 1});
      TableGradients const gradients{.sources = rows, .source_indices = batch.positions(0)};
      store.push(stream, batch, {&gradients, 1});
      store.advance_clock();
      if (store.clock() < Clock{6}) prepare(store.clock() + 3);
    }
    EXPECT_LE(store.size(TableId{0}), kKeys);
    std::vector<std::int64_t> received(static_cast<std::size_t>(ranks), 1);
    store.wait_allreduce(received);
    EXPECT_EQ(received.back(), ranks);
    store.wait_barrier();
    if (first) {
      bytes.trained = allocated_bytes() - before;
      for (auto const& line : store.memory_plan()) bytes.planned += static_cast<double>(line.bytes);
    }
    store.wait_barrier();
  });
  return bytes;
}

TEST(MemoryOfRanks, GrowsLinearly) {
  if (!kCountsAllocations) GTEST_SKIP() << "sanitizers have an allocator of their own";
  constexpr int kFew = 100, kMany = 200;
  bytes_of(2);  // allocates what a process needs only once
  Bytes const few = bytes_of(kFew), many = bytes_of(kMany);
  constexpr double kPairs =
      kMany * kMany - 2.0 * kFew * kFew;  // pairs of ranks in the large group, less those in two small groups
  EXPECT_LE((many.stores - 2 * few.stores) / kPairs, 600) << few.stores << " and " << many.stores << " bytes";
  EXPECT_LE((many.trained - 2 * few.trained) / kPairs, 800) << few.trained << " and " << many.trained << " bytes";

  // The plan has chunks of rows, their lists and the state for other ranks, but no batches and messages. Ranks that own
  // no rows have no chunks.
  double const of_rank = many.trained / kMany;
  EXPECT_LE(many.planned, 1.25 * of_rank);
  EXPECT_GE(many.planned, 0.8 * of_rank);
}

TEST(MemoryOfRanks, PlanIncludesOtherRanks) {
  std::vector<std::uint64_t> planned;
  for (int const ranks : {1, 2, 11, 101}) {
    auto const group = Group::threads(ranks);
    run_ranks(group, [&](Group const& member) {
      Store store(member, {.threads = 1});
      store.add_table({.name = "t", .dim = kDim, .expected_rows = 1000});
      if (member.rank() != Rank{0}) return;
      std::uint64_t bytes = 0;
      for (auto const& line : store.memory_plan()) {
        if (line.what.find("other ranks") != std::string::npos) bytes = line.bytes;
      }
      planned.push_back(bytes);
    });
  }
  constexpr std::uint64_t kOne = cache::Engine::kBytesOfPeer;
  EXPECT_EQ(planned, (std::vector<std::uint64_t>{0, kOne, 10 * kOne, 100 * kOne}));
}

// Long arrays of integers are sent to rank 0 and back, and not from each rank to each other rank.
TEST(MemoryOfRanks, LongAllreduceUsesOneRank) {
  constexpr int kRanks = 8;
  constexpr std::size_t kLong = 5000;
  run_ranks(Group::threads(kRanks), [](Group const& group) {
    Store store(group, {.threads = 1});
    std::uint64_t const me = number(group.rank());
    store.wait_barrier();
    std::uint64_t const before = store.stats().sent.bytes();
    std::vector<std::int64_t> values(kLong);
    for (std::size_t i = 0; i < kLong; ++i) values[i] = static_cast<std::int64_t>(i * (me + 1)) - 3;
    store.wait_allreduce(values);
    for (std::size_t i = 0; i < kLong; ++i) EXPECT_EQ(values[i], static_cast<std::int64_t>(36 * i) - 24);
    std::uint64_t const sent = store.stats().sent.bytes() - before;
    if (me > 0) {
      EXPECT_LE(sent, kLong * sizeof(std::int64_t) + 4096);
    }

    auto const pieces = store.wait_gather_to(Rank{2}, std::string(100 * (me + 1), 'x'));
    ASSERT_EQ(pieces.size(), std::size_t{kRanks});
    for (std::size_t r = 0; r < pieces.size(); ++r) EXPECT_EQ(pieces[r].size(), me == 2 ? 100 * (r + 1) : 0);
    EXPECT_THROW(store.wait_gather_to(Rank{8}, ""), Error);
    store.wait_barrier();
  });
}

}  // namespace
}  // namespace gpups::test::memory_of_ranks_test
