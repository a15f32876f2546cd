// SPDX-License-Identifier: Apache-2.0
// If batches are reused in every epoch, each batch is prepared once and occurs once in every epoch.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "trainer/step/pipeline.hpp"

namespace gpups::trainer::reuse_batches_test {
namespace {

constexpr std::uint64_t kSamples = 1003;

BatchOptions options() { return {.batch_size = 100, .microbatches = 8, .seed = 4, .same_batches = true}; }

TEST(SameBatches, EachEpochHasAllBatchesInNewOrder) {
  BatchSampler batches(kSamples, options());
  ASSERT_EQ(batches.steps_per_epoch(), 11);
  std::map<std::int64_t, std::vector<std::uint64_t>> first_epoch;
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::int64_t t = epoch * 11; t < (epoch + 1) * 11; ++t) {
      Batch const batch = batches.make(Clock{t});
      order.push_back(batches.batch_number(Clock{t}));
      EXPECT_EQ(batch.samples.size(), batches.samples(Clock{t}));
      EXPECT_EQ(batch.epoch, epoch);
      auto const [place, is_new] = first_epoch.emplace(order.back(), batch.samples);
      EXPECT_EQ(is_new, epoch == 0);
      EXPECT_EQ(place->second, batch.samples);
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (std::int64_t i = 0; i < 11; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(orders.size(), 5U);
  std::set<std::uint64_t> samples;
  for (auto const& [number, some] : first_epoch) samples.insert(some.begin(), some.end());
  EXPECT_EQ(samples.size(), kSamples);
}

TEST(SameBatches, FirstEpochEqualsSamplingWithoutReuse) {
  BatchOptions anew = options();
  anew.same_batches = false;
  BatchSampler same(kSamples, options()), other(kSamples, anew);
  for (std::int64_t t = 0; t < 11; ++t) EXPECT_EQ(same.make(Clock{t}).samples, other.make(Clock{t}).samples);
  EXPECT_NE(same.make(Clock{12}).samples, other.make(Clock{12}).samples);
}

// A task whose samples are keys. It counts calls of prepare().
class CountingTask : public Task {
 public:
  struct PreparedStep : TaskStep {
    std::vector<Key> keys;
    std::vector<TableBatch> tables() const override {
      return {{.table = TableId{0}, .keys = View<Key const>(keys), .offsets = {}}};
    }
    View<std::int64_t const> forward_backward(Stream&, PreparedBatch const&,
                                              std::span<MatrixView<float const> const>) override {
      return {};
    }
    std::vector<TableGradients> gradients() const override { return {}; }
  };

  std::vector<TableOptions> tables() const override { return {{.name = "a", .dim = 4}}; }
  std::unique_ptr<TaskStep> prepare(Stream&, Batch const& batch) override {
    ++prepared;
    auto step = std::make_unique<PreparedStep>();
    for (std::uint64_t sample : batch.samples) step->keys.push_back(Key{sample});
    return step;
  }
  Metrics wait_evaluate(Stream&, Store&, std::string_view) override { return {}; }

  int prepared = 0;
};

// Runs a pipeline and returns the keys of each step.
std::vector<std::vector<Key>> run(CountingTask& task, bool keep, bool thread) {
  Store store(Group::alone(), {});
  store.add_table(task.tables()[0]);
  Stream stream = store.make_stream();
  StageTimes times;
  std::vector<std::vector<Key>> keys;
  Pipeline pipeline(store, task, BatchSampler(kSamples, options()), times,
                    {.begin = Clock{0}, .end = Clock{33}, .prefetch_thread = thread, .reuse_batches = keep});
  while (auto step = pipeline.next()) {
    EXPECT_EQ(step->clock, store.clock());
    EXPECT_EQ(step->prepared.clock(), step->clock);
    EXPECT_EQ(step->epoch, number(step->clock) / 11);
    EXPECT_EQ(step->samples, step->batch_samples);
    EXPECT_EQ(step->prepared.entries(0), step->samples);
    EXPECT_EQ(step->microbatches, std::min<std::size_t>(step->samples, 8));
    store.wait_ready(step->prepared);
    auto const& all = step->prepared.keys(0);
    keys.emplace_back(all.begin(), all.end());
    Matrix<float> const sources(Device::host(), step->samples, 4);
    memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store.push(stream, step->prepared, {&gradients, 1});
    store.advance_clock();
  }
  return keys;
}

TEST(ReusedBatches, ArePreparedOnce) {
  CountingTask kept, alone, anew;
  auto const keys = run(kept, true, true);
  EXPECT_EQ(kept.prepared, 11);
  EXPECT_EQ(run(alone, true, false), keys);
  EXPECT_EQ(alone.prepared, 11);
  EXPECT_EQ(run(anew, false, true), keys);
  EXPECT_EQ(anew.prepared, 33);
}

}  // namespace
}  // namespace gpups::trainer::reuse_batches_test
