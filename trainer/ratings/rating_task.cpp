// SPDX-License-Identifier: Apache-2.0
#include "trainer/ratings/rating_task.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/factor/rating_errors.hpp"
#include "kernels/nvtx.hpp"
#include "trainer/ratings/rating_predictor.hpp"
#include "trainer/table_settings.hpp"

namespace gpups::trainer {
namespace {

class RatingStep : public TaskStep {
 public:
  RatingStep(Array<Key> rows, Array<Key> columns, Array<float> values, RatingTask::Computed& computed)
      : rows_(std::move(rows)), columns_(std::move(columns)), values_(std::move(values)), computed_(computed) {}

  std::vector<TableBatch> tables() const override {
    return {{.table = kRowsTable, .keys = rows_}, {.table = kColumnsTable, .keys = columns_}};
  }

  std::int64_t forward_backward(Stream& stream, PreparedBatch const& prepared,
                                std::span<MatrixView<float const> const> rows) override {
    std::size_t const count = values_.size(), losses = kernels::rating_losses(count);
    if (computed_.slopes.size() < count) {
      stream.wait();
      computed_ = {Array<float>(stream.device(), count), Array<std::int64_t>(stream.device(), losses)};
    }
    auto const slopes = computed_.slopes.view().slice(0, count);
    auto const losses_now = computed_.losses.view().slice(0, losses);
    kernels::rating_errors(stream, {.rows = rows[0],
                                    .columns = rows[1],
                                    .rows_of = prepared.positions(0),
                                    .columns_of = prepared.positions(1),
                                    .ratings = values_,
                                    .slopes = slopes,
                                    .losses = losses_now});
    gradients_ = {{.sources = rows[1], .source_indices = prepared.positions(1), .coefficients = slopes},
                  {.sources = rows[0], .source_indices = prepared.positions(0), .coefficients = slopes}};
    std::vector<std::int64_t> const all = to_host(stream, View<std::int64_t const>(losses_now));
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  }

  std::vector<TableGradients> gradients() const override { return gradients_; }

 private:
  Array<Key> rows_, columns_;
  Array<float> values_;
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
    : set_(set), config_(config), schedule_steps_(schedule_steps) {}

std::vector<TableOptions> RatingTask::tables() const {
  auto const table = [&](char const* name, std::size_t rows) {
    return TableOptions{.name = name,
                        .dim = static_cast<std::size_t>(config_.model.dim),
                        .initializer = initializer(config_.model),
                        .optimizer = row_optimizer(config_.optimizer),
                        .schedule = schedule(config_.optimizer, schedule_steps_),
                        .expected_rows = rows,
                        .value_type = row_value_type(config_.model)};
  };
  return {table("rows", set_.known_rows), table("columns", set_.known_columns)};
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
                                      moved_there(stream, std::move(values)), computed_);
}

Metrics RatingTask::wait_evaluate(Stream& stream, Store& store, std::string_view split) {
  kernels::NvtxRange const range("evaluate");
  return wait_predict(stream, store, set_, set_.split(split)).wait_metrics(store);
}

}  // namespace gpups::trainer
