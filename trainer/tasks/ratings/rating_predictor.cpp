// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_predictor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/check.hpp"
#include "kernels/factor/rating_errors.hpp"
#include "trainer/base/long_loop.hpp"
#include "trainer/tasks/ratings/rating_kind.hpp"

namespace gpups::trainer {

namespace {

constexpr char kScaleBlob[] = "gpu_train/rating_scale";

}  // namespace

RatingScale scale_of(std::span<Rating const> ratings, bool biases) {
  double sum = 0, squares = 0;
  RatingScale scale{.lowest = ratings[0].value, .highest = ratings[0].value};
  for (Rating const& rating : ratings) {
    sum += rating.value;
    scale.lowest = std::min(scale.lowest, rating.value);
    scale.highest = std::max(scale.highest, rating.value);
  }
  double const mean = sum / static_cast<double>(ratings.size()), from = biases ? mean : 0;
  for (Rating const& rating : ratings) squares += (rating.value - from) * (rating.value - from);
  auto const deviation = static_cast<float>(std::sqrt(squares / static_cast<double>(ratings.size())));
  scale.mean = static_cast<float>(mean);
  if (deviation > 0) scale.deviation = deviation;
  return scale;
}

Blob to_blob(RatingScale const& scale) {
  return {kScaleBlob, std::string(reinterpret_cast<char const*>(&scale), sizeof scale)};
}

RatingScale rating_scale(std::span<Blob const> blobs) {
  for (Blob const& blob : blobs) {
    RatingScale scale;
    if (blob.name != kScaleBlob) continue;
    GPUPS_REQUIRE(
        blob.bytes.size() == sizeof scale,
        "the checkpoint has a range of ratings of {} bytes instead of {} (another version saved it): train again",
        blob.bytes.size(), sizeof scale);
    std::memcpy(&scale, blob.bytes.data(), sizeof scale);
    return scale;
  }
  throw Error(
      "the checkpoint has no range of ratings (it was not saved by a run on ratings, so it cannot predict any): "
      "give the folder of a run on ratings");
}

RatingSums::RatingSums(double largest, double unit) : unit_(unit) {
  int exponent = 0;
  std::frexp(largest, &exponent);  // largest < 2^exponent
  scale_ = std::ldexp(1.0, 16 - exponent);
}

void RatingSums::add(double error) {
  double const scaled = std::fabs(error) * scale_;
  ++ratings_;
  squares_.add(scaled * scaled);
  distances_.add(scaled);
}

Metrics RatingSums::wait_metrics(Store& store) const {
  std::int64_t sums[] = {ratings_, squares_.whole, squares_.rest, distances_.whole, distances_.rest};
  store.wait_allreduce(sums);
  auto const ratings = static_cast<double>(sums[0]);
  double const mse = ExactSum{sums[1], sums[2]}.total() / ratings / scale_ / scale_,
               mae = ExactSum{sums[3], sums[4]}.total() / ratings / scale_;
  return {.json = {{"ratings", sums[0]}, {"mse", mse}, {"rmse", std::sqrt(mse)}, {"mae", mae}},
          .text = fmt::format("mse {:.4g}  rmse {:.4g}  mae {:.4g}", mse, std::sqrt(mse), mae),
          .quality = 1 / (1 + mse / unit_ / unit_)};  // positive, and larger for smaller errors
}

namespace {

Matrix<float> zero_matrix(Stream& stream, std::size_t rows, std::size_t columns) {
  Matrix<float> matrix(stream.device(), rows, columns);
  View<float> const all = matrix.view().flat();
  memory::fill_bytes(stream, all.data(), 0, all.bytes());
  return matrix;
}

// Returns a bound of the errors of predictions, which are limited to the range of training ratings.
double largest_error(RatingScale const& scale, std::span<Rating const> ratings) {
  double lowest = scale.lowest, highest = scale.highest;
  for (Rating const& rating : ratings) {
    lowest = std::min<double>(lowest, rating.value);
    highest = std::max<double>(highest, rating.value);
  }
  return highest - lowest;
}

}  // namespace

std::uint64_t predictor_bytes(Config const& config) {
  std::size_t const matrices = config.settings<RatingSettings>().biases ? 3 : 2;
  return matrices * (RatingPredictor::kAtOnce + 1) * row_stride(factor_dim(config)) * sizeof(float);
}

RatingPredictor::RatingPredictor(Stream& stream, Store& store, Config const& config, RatingScale const& scale)
    : stream_(stream),
      store_(store),
      biases_(config.settings<RatingSettings>().biases),
      scale_(scale),
      rows_(make_side(kRowsTable)),
      columns_(make_side(kColumnsTable)),
      slopes_(stream.device(), kAtOnce),
      losses_(stream.device(), kernels::rating_losses(kAtOnce)) {
  zeros_ = to_device(stream, std::vector<float>(kAtOnce, 0));
  if (!biases_) return;
  sources_ = Matrix<float>(stream.device(), kAtOnce + 1, factor_dim(config));
  column_biases_ = Array<float>(stream.device(), kAtOnce + 1);
}

RatingPredictor::Side RatingPredictor::make_side(TableId table) {
  return {.table = table,
          .rows = zero_matrix(stream_, kAtOnce + 1, store_.table(table).dim),
          .found = Array<std::uint8_t>(stream_.device(), kAtOnce)};
}

LookupRequest RatingPredictor::begin_lookup(Side const& side, View<Key const> keys) {
  return store_.begin_lookup(stream_, side.table, keys, side.rows.view().slice(0, keys.size()),
                             side.found.view().slice(0, keys.size()));
}

// Returns the row of each rating: its own, or the zeros if there is none.
std::vector<std::uint32_t> RatingPredictor::positions(Side const& side, std::size_t count) {
  std::vector<std::uint8_t> const found = to_host(stream_, View<std::uint8_t const>(side.found.view().slice(0, count)));
  std::vector<std::uint32_t> rows(count);
  for (std::size_t i = 0; i < count; ++i) rows[i] = static_cast<std::uint32_t>(found[i] != 0 ? i : kAtOnce);
  return rows;
}

std::vector<float> RatingPredictor::wait_predict(std::span<Key const> rows, std::span<Key const> columns) {
  std::size_t const count = rows.size();
  Array<Key> const row_keys = to_device(stream_, std::vector<Key>(rows.begin(), rows.end()));
  Array<Key> const column_keys = to_device(stream_, std::vector<Key>(columns.begin(), columns.end()));
  LookupRequest const of_rows = begin_lookup(rows_, row_keys), of_columns = begin_lookup(columns_, column_keys);
  store_.wait_lookup(stream_, of_rows);
  store_.wait_lookup(stream_, of_columns);

  std::vector<std::uint32_t> const row_at = positions(rows_, count), column_at = positions(columns_, count);
  for (std::size_t i = 0; i < count; ++i) unknown_ += row_at[i] == kAtOnce || column_at[i] == kAtOnce ? 1 : 0;
  Array<std::uint32_t> const rows_of = to_device(stream_, row_at), columns_of = to_device(stream_, column_at);
  if (biases_) {
    kernels::split_biases(
        stream_,
        {.rows = columns_.rows, .sources = sources_, .biases = column_biases_, .mean = scale_.mean / scale_.deviation});
  }
  kernels::rating_errors(stream_, {.rows = rows_.rows,
                                   .columns = biases_ ? sources_ : columns_.rows,
                                   .rows_of = rows_of,
                                   .columns_of = columns_of,
                                   .ratings = zeros_.view().slice(0, count),
                                   .column_biases = column_biases_,
                                   .slopes = slopes_,
                                   .losses = losses_});
  std::vector<float> predictions = to_host(stream_, View<float const>(slopes_.view().slice(0, count)));
  for (float& p : predictions) p = std::clamp(p / 2 * scale_.deviation, scale_.lowest, scale_.highest);
  return predictions;
}

RatingSums wait_predict(Stream& stream, Store& store, Config const& config, RatingScale const& scale,
                        RatingSet const& set, std::span<Rating const> ratings) {
  constexpr std::size_t kAtOnce = RatingPredictor::kAtOnce;
  RatingPredictor predictor(stream, store, config, scale);
  RatingSums sums(largest_error(scale, ratings), scale.deviation);
  auto const ranks = static_cast<std::size_t>(store.ranks());
  LongLoop progress("evaluating", static_cast<double>(ratings.size()), number(store.rank()) != 0);
  for (std::size_t b = number(store.rank()); b * kAtOnce < ratings.size(); b += ranks) {
    if (progress.stops(static_cast<double>(b * kAtOnce))) break;
    auto const some = ratings.subspan(b * kAtOnce, std::min(kAtOnce, ratings.size() - b * kAtOnce));
    std::vector<Key> rows, columns;
    for (Rating const& rating : some) {
      rows.push_back(set.rows.keys()[rating.row]);
      columns.push_back(set.columns.keys()[rating.column]);
    }
    std::vector<float> const predictions = predictor.wait_predict(rows, columns);
    for (std::size_t i = 0; i < some.size(); ++i) sums.add(double{predictions[i]} - double{some[i].value});
  }
  store.wait_barrier();  // a rank serves the look-ups of other ranks until all ranks are done
  return sums;
}

}  // namespace gpups::trainer
