// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_data.hpp"

#include <fmt/format.h>

#include "trainer/base/progress_reporter.hpp"
#include "trainer/tasks/ratings/factor_tables.hpp"
#include "trainer/tasks/ratings/rating_kind.hpp"
#include "trainer/tasks/ratings/rating_predictor.hpp"
#include "trainer/tasks/ratings/rating_task.hpp"

namespace gpups::trainer {

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

}  // namespace gpups::trainer
