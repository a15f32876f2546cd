// SPDX-License-Identifier: Apache-2.0
#include "trainer/ratings/rating_predictor.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/factor/rating_errors.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kPredictedAtOnce = 16384;  // ratings in a look-up; few enough that their rows stay in caches

class Predictor {
 public:
  Predictor(Stream& stream, Store& store, RatingSet const& set, std::size_t most)
      : stream_(stream),
        store_(store),
        set_(set),
        rows_(room(kRowsTable, most)),
        columns_(room(kColumnsTable, most)),
        slopes_(stream.device(), most),
        losses_(stream.device(), kernels::rating_losses(most)) {
    std::vector<std::uint32_t> each(most);
    std::iota(each.begin(), each.end(), 0U);
    each_ = to_device(stream, each);
  }

  void wait_add(std::span<Rating const> ratings, RatingSums& sums) {
    std::size_t const count = ratings.size();
    std::vector<Key> row_keys, column_keys;
    std::vector<float> values;
    for (Rating const& rating : ratings) {
      row_keys.push_back(set_.rows.keys()[rating.row]);
      column_keys.push_back(set_.columns.keys()[rating.column]);
      values.push_back(rating.value);
    }
    MatrixView<float> const rows = rows_.view().slice(0, count), columns = columns_.view().slice(0, count);
    Array<Key> const row_keys_there = to_device(stream_, row_keys), column_keys_there = to_device(stream_, column_keys);
    Array<float> const values_there = to_device(stream_, values);
    LookupRequest const of_rows = store_.begin_lookup(stream_, kRowsTable, row_keys_there, rows, {});
    LookupRequest const of_columns = store_.begin_lookup(stream_, kColumnsTable, column_keys_there, columns, {});
    store_.wait_lookup(stream_, of_rows);
    store_.wait_lookup(stream_, of_columns);

    View<std::uint32_t const> const each = each_.view().slice(0, count);
    kernels::rating_errors(stream_, {.rows = rows,
                                     .columns = columns,
                                     .rows_of = each,
                                     .columns_of = each,
                                     .ratings = values_there,
                                     .slopes = slopes_,
                                     .losses = losses_});
    for (float slope : to_host(stream_, slopes_.view().slice(0, count))) sums.add(0.5 * static_cast<double>(slope));
  }

 private:
  Matrix<float> room(TableId table, std::size_t rows) {
    Matrix<float> matrix(stream_.device(), rows, store_.table(table).dim);
    View<float> const all = matrix.view().flat();
    memory::fill_bytes(stream_, all.data(), 0, all.bytes());  // sets the padding, which a look-up does not write
    return matrix;
  }

  Stream& stream_;
  Store& store_;
  RatingSet const& set_;
  Matrix<float> rows_, columns_;
  Array<float> slopes_;
  Array<std::int64_t> losses_;
  Array<std::uint32_t> each_;  // 0, 1, ..: each rating has separate rows
};

}  // namespace

std::uint64_t predictor_bytes(std::size_t dim) { return 2 * kPredictedAtOnce * row_stride(dim) * sizeof(float); }

RatingSums wait_predict(Stream& stream, Store& store, RatingSet const& set, std::span<Rating const> ratings) {
  Predictor predictor(stream, store, set, std::min(kPredictedAtOnce, ratings.size()));
  RatingSums sums;
  auto const ranks = static_cast<std::size_t>(store.ranks());
  for (std::size_t b = number(store.rank()); b * kPredictedAtOnce < ratings.size(); b += ranks) {
    std::size_t const first = b * kPredictedAtOnce;
    predictor.wait_add(ratings.subspan(first, std::min(kPredictedAtOnce, ratings.size() - first)), sums);
  }
  store.wait_barrier();  // a rank serves the look-ups of other ranks until all ranks are done
  return sums;
}

}  // namespace gpups::trainer
