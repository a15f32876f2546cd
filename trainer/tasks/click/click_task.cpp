// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/click_task.hpp"
#include "trainer/input/saved_columns.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/nvtx.hpp"
#include "kernels/runtime/upload.hpp"
#include "trainer/base/long_loop.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/click_tables.hpp"

namespace gpups::trainer {
namespace {

// One step of training.
class ClickStep : public TaskStep {
 public:
  // `computation` is reused from step to step. progressive: receives the predictions of the step; may be null.
  ClickStep(Stream& stream, Batch const& batch, ClickInput input, ClickComputation& computation, DenseLayers& dense,
            PredictionCollector* progressive)
      : clock_(batch.clock),
        microbatches_(batch.microbatches),
        sample_numbers_(kernels::uploaded(stream, batch.sample_numbers)),
        input_(std::move(input)),
        computation_(computation),
        dense_(dense),
        progressive_(progressive) {}

  std::vector<TableBatch> tables() const override {
    std::vector<TableBatch> tables;
    for (ClickInput::InputPart const& part : input_.parts) tables.push_back({.table = part.table, .keys = part.keys});
    return tables;
  }

  View<std::int64_t const> forward_backward(Stream& stream, PreparedBatch const& prepared,
                                            std::span<MatrixView<float const> const> rows) override {
    std::vector<View<std::uint32_t const>> positions;
    for (std::size_t p = 0; p < prepared.parts(); ++p) positions.push_back(prepared.positions(p));
    computation_.pool(stream, input_, rows, positions);
    computation_.forward_backward(stream, input_, {clock_, sample_numbers_, microbatches_}, dense_);
    return computation_.losses(input_);
  }

  void take_losses(Stream& stream, std::span<std::int64_t const> losses) override {
    if (progressive_ == nullptr) return;
    progressive_->add(to_host(stream, computation_.probabilities(input_)), to_host(stream, input_.labels.view()),
                      losses);
  }

  std::vector<TableGradients> gradients() const override { return computation_.gradients(input_); }

 private:
  Clock clock_;
  std::vector<Microbatch> microbatches_;
  Array<std::uint32_t> sample_numbers_;
  ClickInput input_;
  ClickComputation& computation_;
  DenseLayers& dense_;
  PredictionCollector* progressive_;
};

}  // namespace

ClickTask::ClickTask(ClickData const& data, Config const& config, TaskContext const& context)
    : data_(data),
      config_(config),
      context_(context),
      model_(data.train().samples.layout(), config, data.statistics()),
      dense_(make_click_layers(model_, config, context)) {
  if (config.settings<ClickSettings>().min_count == 0) return;
  auto const min_count = static_cast<std::uint32_t>(config.settings<ClickSettings>().min_count);
  model_.features().merge_rare_values(data.frequent_values(model_.features(), min_count));
}

std::vector<TableOptions> ClickTask::tables() const { return click_tables(model_, config_, context_.schedule_steps); }

RowDropout ClickTask::row_dropout(Batch const& batch) const {
  return {.rate = config_.settings<ClickSettings>().row_dropout,
          .seed = static_cast<std::uint64_t>(config_.train.seed),
          .clock = batch.clock,
          .sample_numbers = batch.sample_numbers};
}

std::unique_ptr<TaskStep> ClickTask::prepare(Stream& stream, Batch const& batch) {
  data_.train().samples.gather(batch.samples, samples_);
  ClickInput input = model_.features().make(stream, samples_, row_dropout(batch));
  return std::make_unique<ClickStep>(stream, batch, std::move(input), training_, dense_,
                                     is_progressive() && batch.epoch == 0 ? &progressive_ : nullptr);
}

Metrics ClickTask::wait_evaluate(Stream& stream, Store& store, std::string_view name) {
  kernels::NvtxRange const range("evaluate");
  Split const& split = data_.split(name);
  auto const ranks = static_cast<std::uint64_t>(store.ranks());
  PredictionCollector counts;
  SampleBatch samples;
  LongLoop progress("evaluating", static_cast<double>(split.count), number(store.rank()) != 0);
  for (std::uint64_t b = number(store.rank()); b * kPredictBlock < split.count; b += ranks) {
    std::uint64_t const first = b * kPredictBlock;
    if (progress.stops(static_cast<double>(first))) break;
    split.samples.read(split.first + first, std::min<std::uint64_t>(kPredictBlock, split.count - first), samples);
    Predictions const predicted = predictor_.wait_predict(stream, store, samples);
    counts.add(predicted.probabilities, samples.labels, predicted.losses);
  }
  store.wait_barrier();  // every rank serves look-ups until all ranks have finished
  return to_metrics(counts.wait_metrics(store));
}

bool ClickTask::is_progressive() const { return config_.settings<ClickSettings>().progressive; }

std::optional<Metrics> ClickTask::wait_progressive(Store& store) {
  if (!is_progressive()) return std::nullopt;
  ClickMetrics const metrics = progressive_.wait_metrics(store);
  if (metrics.samples == 0) return std::nullopt;
  return to_metrics(metrics);
}

std::vector<Blob> ClickTask::wait_save(Stream& stream) const {
  std::vector<Blob> blobs = dense_.wait_save(stream);
  blobs.push_back(to_blob(data_.statistics()));
  if (!data_.columns().empty()) blobs.push_back(to_blob(data_.columns()));
  if (config_.settings<ClickSettings>().min_count > 0) {
    auto const min_count = static_cast<std::uint32_t>(config_.settings<ClickSettings>().min_count);
    blobs.push_back(to_blob(data_.frequent_values(model_.features(), min_count)));
  }
  return blobs;
}

void ClickTask::wait_restore(Stream& stream, std::span<Blob const> blobs) { dense_.wait_restore(stream, blobs); }

}  // namespace gpups::trainer
