// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_task.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/base/nvtx.hpp"
#include "kernels/factor/rating_errors.hpp"
#include "trainer/tasks/ratings/factor_tables.hpp"
#include "trainer/tasks/ratings/rating_predictor.hpp"

namespace gpups::trainer {
namespace {

class RatingStep : public TaskStep {
 public:
  // mean: of training ratings, if the model has biases.
  RatingStep(Array<Key> rows, Array<Key> columns, Array<float> values, std::optional<float> mean,
             RatingTask::Computed& computed)
      : rows_(std::move(rows)),
        columns_(std::move(columns)),
        values_(std::move(values)),
        mean_(mean),
        computed_(computed) {}

  std::vector<TableBatch> tables() const override {
    return {{.table = kRowsTable, .keys = rows_}, {.table = kColumnsTable, .keys = columns_}};
  }

  std::int64_t forward_backward(Stream& stream, PreparedBatch const& prepared,
                                std::span<MatrixView<float const> const> rows) override {
    std::size_t const count = values_.size(), losses = kernels::rating_losses(count);
    if (computed_.slopes.size() < count) {
      stream.wait();
      computed_.slopes = Array<float>(stream.device(), count);
      computed_.losses = Array<std::int64_t>(stream.device(), losses);
    }
    auto const slopes = computed_.slopes.view().slice(0, count);
    auto const losses_now = computed_.losses.view().slice(0, losses);
    if (mean_) reserve(stream, computed_.column_biases, rows[1].rows());
    MatrixView<float const> const row_sources = sources(stream, rows[0], computed_.row_sources, {});
    MatrixView<float const> const column_sources =
        sources(stream, rows[1], computed_.column_sources, computed_.column_biases);
    kernels::rating_errors(stream, {.rows = rows[0],
                                    .columns = column_sources,
                                    .rows_of = prepared.positions(0),
                                    .columns_of = prepared.positions(1),
                                    .ratings = values_,
                                    .column_biases = computed_.column_biases,
                                    .slopes = slopes,
                                    .losses = losses_now});
    gradients_ = {{.sources = column_sources, .source_indices = prepared.positions(1), .coefficients = slopes},
                  {.sources = row_sources, .source_indices = prepared.positions(0), .coefficients = slopes}};
    std::vector<std::int64_t> const all = to_host(stream, View<std::int64_t const>(losses_now));
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  }

  std::vector<TableGradients> gradients() const override { return gradients_; }

 private:
  // Makes room for `size` numbers, and some more, so that it rarely grows.
  static void reserve(Stream& stream, Array<float>& array, std::size_t size) {
    if (array.size() >= size) return;
    stream.wait();
    array = Array<float>(stream.device(), size + size / 4);
  }
  // Returns the sources of the other side's gradients. room: their memory, if they are not the rows themselves. biases:
  // see SplitBiases.
  MatrixView<float const> sources(Stream& stream, MatrixView<float const> rows, Array<float>& room,
                                  View<float> biases) {
    if (!mean_) return rows;
    reserve(stream, room, rows.rows() * rows.stride());
    MatrixView<float> const split(room.data(), rows.rows(), rows.columns(), rows.stride(), stream.device());
    kernels::split_biases(stream, {.rows = rows, .sources = split, .biases = biases, .mean = *mean_});
    return split;
  }

  Array<Key> rows_, columns_;
  Array<float> values_;
  std::optional<float> mean_;
  RatingTask::Computed& computed_;
  std::vector<TableGradients> gradients_;
};

// Moves a host array to the stream's device. Blocks.
template <class T>
Array<T> moved_there(Stream& stream, Array<T> from) {
  if (stream.device().is_host()) return from;
  Array<T> to(stream.device(), from.size());
  copy<T>(stream, to, from);
  stream.wait();
  return to;
}

}  // namespace

RatingTask::RatingTask(RatingSet const& set, Config const& config, std::int64_t schedule_steps)
    : set_(set), config_(config), schedule_steps_(schedule_steps), scale_(scale_of(set.train)) {}

std::vector<TableOptions> RatingTask::tables() const {
  return factor_tables(config_, set_.known_rows, set_.known_columns, schedule_steps_);
}

std::unique_ptr<TaskStep> RatingTask::prepare(Stream& stream, Batch const& batch) {
  std::size_t const count = batch.samples.size();
  Array<Key> rows(Device::host(), count), columns(Device::host(), count);
  Array<float> values(Device::host(), count);
  for (std::size_t i = 0; i < count; ++i) {
    Rating const& rating = set_.train[batch.samples[i]];
    rows.data()[i] = set_.rows.keys()[rating.row];
    columns.data()[i] = set_.columns.keys()[rating.column];
    values.data()[i] = rating.value;
  }
  return std::make_unique<RatingStep>(moved_there(stream, std::move(rows)), moved_there(stream, std::move(columns)),
                                      moved_there(stream, std::move(values)),
                                      config_.model.biases ? std::optional(scale_.mean) : std::nullopt, computed_);
}

Metrics RatingTask::wait_evaluate(Stream& stream, Store& store, std::string_view split) {
  kernels::NvtxRange const range("evaluate");
  return wait_predict(stream, store, config_.model, scale_, set_, set_.split(split)).wait_metrics(store);
}

std::vector<Blob> RatingTask::wait_save(Stream&) const { return {to_blob(scale_)}; }

}  // namespace gpups::trainer
