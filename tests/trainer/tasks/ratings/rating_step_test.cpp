// SPDX-License-Identifier: Apache-2.0
// One step of a factorization through a store: rows move against the gradient of the mean squared error, computed by
// finite differences in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "trainer/tasks/ratings/rating_data.hpp"
#include "trainer/tasks/ratings/rating_kind.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::rating_step_test {
namespace {

using Factors = std::map<std::uint64_t, std::vector<double>>;  // by key

constexpr double kRate = 0.5;

RatingSet some_ratings() {
  RatingSet set;
  for (std::uint64_t i = 0; i < 40; ++i) {
    std::uint32_t const row = set.rows.add(1000 + i * i % 7), column = set.columns.add(i * 5 % 11);
    set.train.push_back({row, column, static_cast<float>(i % 9) * 0.25F - 1});
  }
  set.known_rows = set.rows.size();
  set.known_columns = set.columns.size();
  return set;
}

Factors factors_of(Store& store, TableId table, std::vector<Key> const& keys) {
  Stream stream = store.make_stream();
  Matrix<float> const values(Device::host(), keys.size(), store.table(table).dim);
  store.lookup(stream, table, View<Key const>(keys), values, {});
  Factors factors;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (float x : values.row(i)) factors[number(keys[i])].push_back(x);
  }
  return factors;
}

// Returns the mean squared error of some ratings, in units of their variance. biased: the last numbers are biases.
double loss_of(RatingSet const& set, std::vector<std::uint64_t> const& samples, Factors const& rows,
               Factors const& columns, bool biased) {
  double mean = 0;
  for (Rating const& rating : set.train) mean += double{rating.value} / static_cast<double>(set.train.size());
  double variance = 0;
  for (Rating const& rating : set.train) {
    double const from = biased ? mean : 0;
    variance += (rating.value - from) * (rating.value - from) / static_cast<double>(set.train.size());
  }
  double const deviation = std::sqrt(variance);
  double sum = 0;
  for (std::uint64_t i : samples) {
    Rating const& rating = set.train[i];
    auto const& w = rows.at(number(set.rows.keys()[rating.row]));
    auto const& h = columns.at(number(set.columns.keys()[rating.column]));
    double product = 0;
    for (std::size_t j = 0; j < w.size() - biased; ++j) product += w[j] * h[j];
    if (biased) product += mean / deviation + w.back() + h.back();
    double const error = product - double{rating.value} / deviation;
    sum += error * error;
  }
  return sum / static_cast<double>(samples.size());
}

// dim, biases
class RatingSteps : public testing::TestWithParam<std::tuple<int, bool>> {};
INSTANTIATE_TEST_SUITE_P(Dims, RatingSteps, testing::Combine(testing::Values(1, 6, 32), testing::Bool()));

TEST_P(RatingSteps, MovesRowsAgainstTheGradient) {
  RatingSet const set = some_ratings();
  Config config = default_config("ratings");
  auto const [dim, biased] = GetParam();
  config.model.dim = dim;
  config.settings<RatingSettings>().biases = biased;
  config.model.init_scale = 0.5;
  config.optimizer.kind = "sgd";
  config.settings<RatingSettings>().l2 = 0;
  config.optimizer.learning_rate = kRate;
  RatingTask task(set, config, 10);
  Store store(Group::alone(), {});
  for (TableOptions const& table : task.tables()) store.add_table(table);
  Factors rows = factors_of(store, kRowsTable, set.rows.keys());
  Factors columns = factors_of(store, kColumnsTable, set.columns.keys());

  Stream stream = store.make_stream();
  Batch batch;
  for (std::uint64_t i = 3; i < 40; i += 2) batch.samples.push_back(i * 7 % 40);
  batch.samples.push_back(batch.samples.front());  // one rating twice
  auto const step = task.prepare(stream, batch);
  PreparedBatch const prepared = store.prepare(stream, Clock{0}, step->tables(), batch.samples.size());
  store.wait_ready(prepared);
  std::vector<Matrix<float>> pulled;
  for (std::size_t p = 0; p < 2; ++p) {
    pulled.emplace_back(Device::host(), prepared.rows(p), factor_dim(config));
    for (float& x : pulled[p].view().flat()) x = 0;
  }
  std::vector<MatrixView<float>> const views(pulled.begin(), pulled.end());
  std::vector<MatrixView<float const>> const const_views(pulled.begin(), pulled.end());
  store.pull(stream, prepared, views);
  auto const losses = step->forward_backward(stream, prepared, const_views);
  double const loss = static_cast<double>(std::accumulate(losses.begin(), losses.end(), std::int64_t{0})) * 0x1p-30;
  store.push(stream, prepared, step->gradients());
  store.advance_clock();
  store.wait_applied();

  double const want = loss_of(set, batch.samples, rows, columns, biased);
  EXPECT_NEAR(loss / static_cast<double>(batch.samples.size()), want, 1e-5);
  double moved = 0;
  for (TableId table : {kRowsTable, kColumnsTable}) {
    bool const of_rows = table == kRowsTable;
    Factors const after = factors_of(store, table, (of_rows ? set.rows : set.columns).keys());
    Factors& before = of_rows ? rows : columns;
    for (auto& [key, values] : before) {
      for (std::size_t j = 0; j < values.size(); ++j) {
        double const x = values[j], delta = 1e-4;
        values[j] = x + delta;
        double const above = loss_of(set, batch.samples, rows, columns, biased);
        values[j] = x - delta;
        double const below = loss_of(set, batch.samples, rows, columns, biased);
        values[j] = x;
        double const step_by = kRate * (above - below) / (2 * delta);
        ASSERT_NEAR(after.at(key)[j], x - step_by, 2e-6) << key << ", " << j;
        moved += std::abs(step_by);
      }
    }
  }
  EXPECT_GT(moved, 0.1);
}

// A row's penalty is that of its ratings, whatever the size of batches: rows that occur in each batch many times are
// updated by it in fewer steps.
TEST(RatingTables, PenaltyOfAnEpochDoesNotDependOnTheBatch) {
  RatingSet set;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    set.train.push_back({set.rows.add(i % 30), set.columns.add(i % 2000), static_cast<float>(i % 5)});
  }
  set.known_rows = set.rows.size();
  set.known_columns = set.columns.size();
  Config config = default_config("ratings");
  config.settings<RatingSettings>().l2 = 0.25;
  std::vector<std::size_t> order(set.train.size());
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(4));
  for (std::size_t const batch : {1, 8, 600, 3000, 6000, 10'000}) {
    config.train.batch_size = static_cast<std::int64_t>(batch);
    auto const tables = RatingTask(set, config, 10).tables();
    std::set<std::pair<std::size_t, std::uint32_t>> rows, columns;  // of a step
    for (std::size_t i = 0; i < order.size(); ++i) {
      rows.insert({i / batch, set.train[order[i]].row});
      columns.insert({i / batch, set.train[order[i]].column});
    }
    // Each of these updates adds the penalty to a gradient that is a mean over the batch.
    auto const samples = static_cast<double>(std::min(batch, order.size()));
    for (auto const& [table, updates] : {std::pair(0U, rows.size()), std::pair(1U, columns.size())}) {
      double const in_epoch = static_cast<double>(updates) * double{tables[table].optimizer.l2} * samples;
      EXPECT_NEAR(in_epoch / 6000, 2 * 0.25, 0.02) << batch << ", " << table;
    }
  }
  config.optimizer.kind = "lamb";
  EXPECT_EQ(RatingTask(set, config, 10).tables()[0].optimizer.l2, 0);
}

// The same ratings in another unit have the same model.
TEST(RatingScales, ModelDoesNotDependOnTheUnit) {
  std::vector<Rating> ratings{{0, 0, 1}, {0, 1, 4}, {1, 1, 7}}, percentages = ratings;
  for (Rating& rating : percentages) rating.value *= 20;
  for (bool const biases : {false, true}) {
    RatingScale const one = scale_of(ratings, biases), other = scale_of(percentages, biases);
    EXPECT_FLOAT_EQ(other.deviation, 20 * one.deviation);
    EXPECT_FLOAT_EQ(other.mean, 20 * one.mean);
    EXPECT_FLOAT_EQ(one.deviation, biases ? std::sqrt(6.0F) : std::sqrt(22.0F));
  }
  std::vector<Rating> const equal{{0, 0, 3}, {1, 1, 3}};
  EXPECT_EQ(scale_of(equal, true).deviation, 1);
}

}  // namespace
}  // namespace gpups::trainer::rating_step_test
