// SPDX-License-Identifier: Apache-2.0
// Predicts ratings from rows that are looked up, many ratings at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/base/exact_sum.hpp"
#include "trainer/config/config.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/ratings/rating_set.hpp"

namespace gpups::trainer {

// The mean, the unit and the range of training ratings. Predictions need them, so checkpoints have them. Models learn
// ratings in units of their deviation, so that the same settings suit ratings from one to five and percentages.
struct RatingScale {
  float mean = 0, deviation = 1;
  float lowest = 0, highest = 0;  // a prediction is not below `lowest` and not above `highest`
};

// biases: the deviation is that from the mean, else that from 0. It is 1 if ratings have none. REQUIRES: ratings is not
// empty.
RatingScale scale_of(std::span<Rating const> ratings, bool biases);

Blob to_blob(RatingScale const& scale);
// Returns the scale of a checkpoint's blobs. Throws Error if it is missing.
RatingScale rating_scale(std::span<Blob const> blobs);

// Error metrics of predicted ratings over all ranks.

// Sums of the errors of this rank's predictions. They are exact to 2^-31 of the largest error, whatever the unit of the
// ratings.
class RatingSums {
 public:
  // largest: no error is larger; equal on all ranks. unit: of errors for the quality, as RatingScale::deviation.
  RatingSums(double largest, double unit);

  // Adds one rating. error: the prediction minus the rating.
  void add(double error);
  // Returns the metrics over all ranks. REQUIRES: at least one rating on all ranks together. Blocks. Collective.
  Metrics wait_metrics(Store& store) const;

 private:
  double scale_;  // a power of two; |error| * scale_ <= 2^16
  double unit_;
  std::int64_t ratings_ = 0;
  ExactSum squares_, distances_;
};

// Returns the bytes of a predictor for this model.
std::uint64_t predictor_bytes(Config const& config);

// The predictions of a model whose tables are in a store. A row or column that training has not seen counts as zeros.
class RatingPredictor {
 public:
  static constexpr std::size_t kAtOnce = 16384;  // ratings; few enough that their rows stay in caches

  // stream, store: must outlive this object.
  RatingPredictor(Stream& stream, Store& store, Config const& config, RatingScale const& scale);

  // Returns the prediction for each pair of a row and a column. REQUIRES: 1 .. kAtOnce pairs. Blocks. Not collective,
  // but every rank must keep its store until all ranks are done.
  std::vector<float> wait_predict(std::span<Key const> rows, std::span<Key const> columns);
  // Returns the number of pairs so far of which the row, the column or both were not found.
  std::uint64_t unknown() const { return unknown_; }

 private:
  // The rows of one table for a batch of ratings, and a row of zeros at the end.
  struct Side {
    TableId table;
    Matrix<float> rows;
    Array<std::uint8_t> found;
  };
  Side make_side(TableId table);
  LookupRequest begin_lookup(Side const& side, View<Key const> keys);
  std::vector<std::uint32_t> positions(Side const& side, std::size_t count);

  Stream& stream_;
  Store& store_;
  bool biases_;
  RatingScale scale_;
  Side rows_, columns_;
  Matrix<float> sources_;  // of columns, with biases
  Array<float> column_biases_;
  Array<float> zeros_, slopes_;
  std::uint64_t unknown_ = 0;
  Array<std::int64_t> losses_;
};

// Predicts this rank's share of the ratings and returns their errors. Blocks. Collective, between steps.
RatingSums wait_predict(Stream& stream, Store& store, Config const& config, RatingScale const& scale,
                        RatingSet const& set, std::span<Rating const> ratings);

}  // namespace gpups::trainer
