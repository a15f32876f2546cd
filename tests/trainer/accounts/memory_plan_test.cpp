// SPDX-License-Identifier: Apache-2.0
// Planned memory of a run, and plans that are rejected. tests/tools compares plans with the memory that runs used.
#include "trainer/accounts/memory_plan.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/expect_error.hpp"
#include "trainer/tasks/click/distinct_count.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::memory_plan_test {
namespace {

using test::expect_error;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

Config configured(std::vector<SettingOverride> const& settings) { return parse_config("", "x", "/data", settings); }

StepSizes sizes(std::vector<SettingOverride> const& settings, std::uint64_t samples, int ranks = 1) {
  return step_sizes(configured(settings), samples, Device::host(), ranks, 0);
}

TEST(StepSizes, DescribeTheRankWithMostSamples) {
  StepSizes const alone = sizes({"train.batch_size=1000", "train.lookahead=7", "run.threads=3"}, 1000000);
  EXPECT_EQ(alone.samples, 1000U);
  EXPECT_EQ(alone.microbatches, 8U);
  EXPECT_EQ(alone.microbatch_samples, 125U);
  EXPECT_EQ(alone.prepared, 8U);
  EXPECT_EQ(alone.threads, 3U);
  StepSizes const third = sizes({"train.batch_size=1000"}, 1000000, 3);  // 3 of 8 microbatches
  EXPECT_EQ(third.microbatches, 3U);
  EXPECT_EQ(third.samples, 375U);
  EXPECT_EQ(sizes({"train.batch_size=1000"}, 40).samples, 40U);                    // the data has only 40 samples
  EXPECT_EQ(sizes({"train.batch_size=1000"}, 1001).samples, 501U);                 // two batches of one size
  EXPECT_EQ(sizes({"train.steps=2", "train.lookahead=9"}, 1000000).prepared, 2U);  // the run has only 2 steps
  EXPECT_EQ(sizes({"train.epochs=3", "train.lookahead=9"}, 100).prepared, 3U);     // 3 epochs of one batch each
  EXPECT_EQ(sizes({"train.batch_size=1000"}, 1000000, 20).microbatches, 1U);
}

std::uint64_t batch_bytes(std::size_t entries, StepSizes const& step) {
  MemoryPlan plan;
  BatchPart const part{.entries = entries, .rows = 10, .table = {.dim = 16}, .entry_bytes = 12};
  add_batches(plan, {&part, 1}, step, Device::host(), "model.negatives");
  return std::accumulate(plan.begin(), plan.end(), std::uint64_t{0},
                         [](auto sum, auto const& l) { return sum + l.bytes; });
}

TEST(MemoryPlan, KeysOnAGpuCountAllEntries) {
  BatchPart const part{.entries = 1000000, .rows = 10, .table = {.dim = 16}, .entry_bytes = 12};
  MemoryPlan host, gpu;
  StepSizes const step = sizes({"train.lookahead=1"}, 1000000);
  add_batches(host, {&part, 1}, step, Device::host(), "");
  add_batches(gpu, {&part, 1}, step, Device::cuda(0), "");
  EXPECT_EQ(gpu[0].bytes - host[0].bytes, (1000000U - 10) * sizeof(Key));
}

TEST(MemoryPlan, BatchesGrowWithEntriesLookaheadAndRanks) {
  StepSizes const few = sizes({"train.lookahead=1"}, 1000000), many = sizes({"train.lookahead=9"}, 1000000);
  EXPECT_GT(batch_bytes(1000000, few), 1000000 * 2 * 28);
  EXPECT_GT(batch_bytes(1000000, many), 1000000 * 10 * 28);
  EXPECT_LT(batch_bytes(1000000, few), batch_bytes(1000000, many));
  StepSizes two = few;
  two.ranks = 2;  // adds values of rows that the other rank owns, sums, and messages
  EXPECT_GT(batch_bytes(1000000, two), batch_bytes(1000000, few));
}

// Homes know of batches as far ahead as they are prepared, but look at the uses of 16 steps only. They sort those of
// rows that stay, too.
TEST(MemoryPlan, CountsAnnouncedUsesIfRowsMove) {
  auto const announced_bytes = [](std::vector<SettingOverride> const& settings, int ranks = 2,
                                  TableOptions const& table = {.dim = 16}) {
    BatchPart const part{.entries = 5000, .rows = 1000, .table = table, .entry_bytes = 12};
    MemoryPlan plan;
    add_batches(plan, {&part, 1}, sizes(settings, 1000000, ranks), Device::host(), "");
    std::uint64_t bytes = 0;
    for (auto const& line : plan) bytes += line.what.starts_with("announced") ? line.bytes : 0;
    return bytes;
  };
  EXPECT_EQ(announced_bytes({}), 0U);
  EXPECT_EQ(announced_bytes({"placement.policy=adaptive"}, 1), 0U);
  EXPECT_EQ(announced_bytes({"placement.policy=adaptive", "train.lookahead=15"}), 16U * 1000 * (8 + 22 + 40));
  EXPECT_EQ(announced_bytes({"placement.policy=adaptive", "train.lookahead=19"}),
            20U * 1000 * 8 + 16U * 1000 * (22 + 40));
  TableOptions const compressed{.dim = 16, .gradient_compression = {.codec = RowCodec::kHalf}};
  EXPECT_EQ(announced_bytes({"placement.policy=adaptive", "train.lookahead=15"}, 2, compressed),
            16U * 1000 * (8 + 22 + 40));
}

// Replicas that the table keeps anyway are part of its own memory.
TEST(MemoryPlan, CountsReplicasThatAreNotKept) {
  TableOptions const table{.dim = 16, .expected_rows = 100000};
  auto const replica_bytes = [&](std::string const& fraction, std::size_t rows) {
    BatchPart const part{.entries = 5000, .rows = rows, .table = table, .entry_bytes = 12};
    MemoryPlan plan;
    auto const step = sizes({{"placement.replica_fraction=" + fraction}}, 1000000, 2);
    add_batches(plan, {&part, 1}, step, Device::host(), "");
    std::uint64_t bytes = 0;
    for (auto const& line : plan) bytes += line.what.starts_with("replicas") ? line.bytes : 0;
    return bytes;
  };
  // Those of a step and of the next one.
  auto const bytes_with = [&](std::size_t replicas) { return table_bytes(table, 50000 + replicas); };
  EXPECT_EQ(replica_bytes("0", 4000), bytes_with(4000) - bytes_with(0));
  EXPECT_EQ(replica_bytes("0.1", 4000), bytes_with(10000) - bytes_with(5000));
  EXPECT_EQ(replica_bytes("0.1", 1800), 0U);
}

MemoryPlan some_plan() {
  return {{.what = "the data", .bytes = 100 * kGiB, .on_host = true, .taken = true},
          {.what = "prepared batches", .bytes = 3 * kGiB, .settings = "train.batch_size"},
          {.what = "rows", .bytes = 2 * kGiB},
          {.what = "layers", .bytes = kGiB, .with_task = true},
          {.what = "small things", .bytes = 1024},
          {.what = "known answers", .bytes = kGiB, .on_host = true}};
}

TEST(MemoryPlan, RejectsPlanThatDoesNotFit) {
  Device const host = Device::host();
  EXPECT_NO_THROW(require_memory(some_plan(), host, 1, {.host = 8 * kGiB, .device = 0}));
  expect_error([&] { require_memory(some_plan(), host, 1, {.host = 6 * kGiB, .device = 0}); },
               {"needs 7.0 GiB of memory on the host and 6.0 GiB is free",
                "3.0 GiB for prepared batches (lower "
                "train.batch_size); 2.0 GiB for rows;"});
  expect_error([&] { require_memory(some_plan(), host, 2, {.host = 8 * kGiB, .device = 0}); },
               {"needs 14.0 GiB", "2 ranks together", "6.0 GiB for prepared batches"});
  EXPECT_NO_THROW(require_memory(without_task(some_plan()), host, 1, {.host = 6 * kGiB + 2048, .device = 0}));
}

TEST(MemoryPlan, GpuRunsAlsoCheckHostMemory) {
  Device const gpu = Device::cuda(0);
  EXPECT_NO_THROW(require_memory(some_plan(), gpu, 1, {.host = kGiB, .device = 7 * kGiB}));
  expect_error([&] { require_memory(some_plan(), gpu, 1, {.host = kGiB, .device = 5 * kGiB}); },
               {"6.0 GiB of memory on cuda:0", "more GPUs"});
  expect_error([&] { require_memory(some_plan(), gpu, 1, {.host = 1000, .device = 7 * kGiB}); },
               {"1.0 GiB of memory on the host", "known answers"});
  auto const text = memory_text(some_plan(), gpu, 2);
  ASSERT_EQ(text.size(), 8U);
  EXPECT_EQ(text[0], " 100.0 GiB  the data, on the host");
  EXPECT_EQ(text[6], "  12.0 GiB  total on cuda:0 by the 2 ranks of this process");
  EXPECT_EQ(text[7], " 102.0 GiB  total on the host by the 2 ranks of this process");
}

TEST(DistinctCount, IsNearTheTrueCount) {
  for (std::uint64_t const count : {0U, 1U, 4095U, 4096U, 20000U, 1000000U}) {
    DistinctCount distinct;
    for (std::uint64_t i = 0; i < 2 * count; ++i) distinct.add(Key{i % count});
    double const truth = static_cast<double>(count);
    EXPECT_NEAR(distinct.count(), truth, count <= 4096 ? 1e-3 * truth : .06 * truth) << count;
  }
  EXPECT_EQ(distinct_of(0, 7), 0U);
  EXPECT_EQ(distinct_of(5, 0), 0U);
  EXPECT_EQ(distinct_of(1000, 7), 7U);
  EXPECT_NEAR(static_cast<double>(distinct_of(1000, 1000)), 632, 2);
}

}  // namespace
}  // namespace gpups::trainer::memory_plan_test
