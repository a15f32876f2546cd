// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/base/nvtx.hpp"
#include "kernels/factor/rating_errors.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/saved_columns.hpp"
#include "trainer/tasks/common/row_penalty.hpp"
#include "trainer/tasks/ratings/rating_kind.hpp"
#include "trainer/tasks/ratings/rating_predictor.hpp"

namespace gpups::trainer {

namespace {

// The smallest, the mean and the largest of some ratings.
struct RangeOfRatings {
  float low, high;
  double mean;

  explicit RangeOfRatings(std::vector<Rating> const& ratings) {
    auto const [first, last] = std::ranges::minmax(ratings, {}, &Rating::value);
    low = first.value, high = last.value;
    double const sum = std::accumulate(ratings.begin(), ratings.end(), 0.0,
                                       [](double all, Rating const& rating) { return all + double{rating.value}; });
    mean = sum / static_cast<double>(ratings.size());
  }
  std::string text() const { return fmt::format("from {} to {}, mean {:.4g}", low, high, mean); }
};

// Adds a notice with the range of the training's ratings: a number that stands for none, such as -1, 0 or 99, is seen
// there. So are those of a split that are outside of it, such as percentages.
void say_ranges(RatingSet& set) {
  RangeOfRatings const train(set.train);
  std::string says = "ratings " + train.text();
  for (char const* split : {"valid", "test"}) {
    if (set.split(split).empty()) continue;
    RangeOfRatings const held_out(set.split(split));
    if (held_out.low >= train.low && held_out.high <= train.high) continue;
    says +=
        fmt::format("; those of the {} {}", split == std::string_view("valid") ? "validation" : split, held_out.text());
  }
  set.notices.push_back(says);
}

}  // namespace

RatingData::RatingData(RatingSet set) : set_(std::move(set)), digest_(set_.digest()) {
  auto const [low, high] = std::ranges::minmax(set_.train, {}, &Rating::value);
  double const largest = std::max(std::fabs(double{low.value}), std::fabs(double{high.value}));
  if (low.value == high.value) {
    set_.notices.push_back(fmt::format(
        "all ratings of the training are {} (there is nothing to learn): check the column of the ratings", low.value));
    return;
  }
  say_ranges(set_);
  if (double{high.value} - double{low.value} < largest * 0x1p-14) {
    set_.notices.push_back(
        fmt::format("the ratings are from {} to {} (they are kept in 32 bits, which have seven digits): subtract a "
                    "constant from them",
                    low.value, high.value));
  }
}

std::string RatingData::summary() const {
  return fmt::format("{}, {}; {} for training, {} for validation, {} for the test", with_count(set_.known_rows, "row"),
                     with_count(set_.known_columns, "column"), with_count(set_.train.size(), "rating"),
                     set_.valid.size(), set_.test.size());
}

nlohmann::json RatingData::counts() const { return {{"rows", set_.known_rows}, {"columns", set_.known_columns}}; }

SampleRows RatingData::sample_rows() const {
  auto const first = [](std::vector<Key> const& keys, std::size_t count) {
    return std::vector<Key>(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count));
  };
  SampleRows rows{.graph = {.rows = static_cast<std::uint32_t>(set_.known_rows + set_.known_columns)},
                  .tables = {{kRowsTable, first(set_.rows.keys(), set_.known_rows)},
                             {kColumnsTable, first(set_.columns.keys(), set_.known_columns)}}};
  for (Rating const& rating : set_.train) {
    std::uint32_t const read[] = {rating.row, static_cast<std::uint32_t>(set_.known_rows + rating.column)};
    rows.graph.add(read);
  }
  return rows;
}

MemoryPlan RatingData::memory_plan(Config const& config, Device device, StepSizes const& step) const {
  std::size_t const ratings = set_.train.size() + set_.valid.size() + set_.test.size(), samples = step.samples;
  auto const tables = factor_tables(config, set_.known_rows, set_.known_columns, 1);
  MemoryPlan plan;
  plan.push_back({.what = "the data",
                  .bytes = ratings * sizeof(Rating) + set_.rows.bytes() + set_.columns.bytes(),
                  .on_host = true,
                  .taken = true});
  add_placement(plan, config, set_.train.size(), 2 * set_.train.size(), set_.known_rows + set_.known_columns);
  std::vector<BatchPart> parts;
  for (TableOptions const& table : tables) {
    // An entry keeps its key. Each of the two tables counts half of the rating.
    parts.push_back({samples, distinct_of(samples, table.expected_rows), table, sizeof(Key) + 2});
  }
  add_batches(plan, parts, step, device, "");
  plan.push_back({"errors of a step", samples * (sizeof(float) + sizeof(std::int64_t)), "train.batch_size"});
  if (config.settings<RatingSettings>().biases) {
    std::uint64_t rows = 0;
    for (BatchPart const& part : parts) rows += part.rows;
    plan.push_back({"rows without biases", rows * (row_stride(tables[0].dim) + 1) * sizeof(float), "train.batch_size"});
  }
  if (has("valid") || has("test")) plan.push_back({"evaluation: buffers of rows", predictor_bytes(config)});
  return plan;
}

std::unique_ptr<Task> RatingData::make_task(Config const& config, TaskContext const& context) const {
  return std::make_unique<RatingTask>(set_, config, context.schedule_steps);
}

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

  View<std::int64_t const> forward_backward(Stream& stream, PreparedBatch const& prepared,
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
    return losses_now;
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
    : set_(set),
      config_(config),
      schedule_steps_(schedule_steps),
      scale_(scale_of(set.train, config.settings<RatingSettings>().biases)) {}

std::vector<TableOptions> RatingTask::tables() const {
  auto tables = factor_tables(config_, set_.known_rows, set_.known_columns, schedule_steps_);
  double const l2 = is_used(config_, "model.l2") ? config_.settings<RatingSettings>().l2 : 0;
  auto const samples = static_cast<double>(set_.train.size()), batch = static_cast<double>(config_.train.batch_size);
  std::vector<double> rows(set_.known_rows), columns(set_.known_columns);
  for (Rating const& rating : set_.train) {
    ++rows[rating.row];
    ++columns[rating.column];
  }
  tables[0].optimizer.l2 += l2_of_updates(l2, rows, samples, batch);
  tables[1].optimizer.l2 += l2_of_updates(l2, columns, samples, batch);
  return tables;
}

std::unique_ptr<TaskStep> RatingTask::prepare(Stream& stream, Batch const& batch) {
  std::size_t const count = batch.samples.size();
  Array<Key> rows(Device::host(), count), columns(Device::host(), count);
  Array<float> values(Device::host(), count);
  for (std::size_t i = 0; i < count; ++i) {
    Rating const& rating = set_.train[batch.samples[i]];
    rows.data()[i] = set_.rows.keys()[rating.row];
    columns.data()[i] = set_.columns.keys()[rating.column];
    values.data()[i] = rating.value / scale_.deviation;
  }
  return std::make_unique<RatingStep>(
      moved_there(stream, std::move(rows)), moved_there(stream, std::move(columns)),
      moved_there(stream, std::move(values)),
      config_.settings<RatingSettings>().biases ? std::optional(scale_.mean / scale_.deviation) : std::nullopt,
      computed_);
}

Metrics RatingTask::wait_evaluate(Stream& stream, Store& store, std::string_view split) {
  kernels::NvtxRange const range("evaluate");
  return wait_predict(stream, store, config_, scale_, set_, set_.split(split)).wait_metrics(store);
}

std::vector<Blob> RatingTask::wait_save(Stream&) const { return {to_blob(scale_), to_blob(set_.columns_of_files)}; }

}  // namespace gpups::trainer
