// SPDX-License-Identifier: Apache-2.0
// Kernels that copy rows. Results larger than the caches are written with nontemporal stores, small ones are not; both
// must be correct.
#include <gtest/gtest.h>

#include <memory>

#include "kernels/base/nontemporal.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/runtime/stream_impl.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::kernels::nontemporal_results_test {
namespace {

constexpr std::size_t kTableRows = 5000;

// The columns of a row, and whether the result is larger than the caches.
struct Shape {
  std::size_t dim;
  bool large;
};

class NontemporalResults : public testing::TestWithParam<Shape> {
 protected:
  NontemporalResults() {
    auto const& arena = *stream_.impl().arena;
    std::size_t const row_bytes = stride_ * sizeof(float);
    while (exceeds_caches(arena, n_ * row_bytes) != GetParam().large) n_ *= 2;
    test::Random random(5);
    values_ = test::floats(random, kTableRows, dim_);
    table_ = test::rows(stream_, values_, kTableRows, stride_);
    for (std::size_t i = 0; i < n_; ++i)
      numbers_.push_back(static_cast<std::uint32_t>(test::below(random, kTableRows)));
    ids_ = to_device(stream_, numbers_);
    out_ = Matrix<float>(stream_.device(), n_, dim_);
    memory::fill_bytes(stream_, out_.view().data(), 1, out_.view().flat().bytes());
  }

  float value(std::size_t i, std::size_t j) const { return values_[numbers_[i] * stride_ + j]; }

  // Expects that row i is factor(i) times row numbers_[i] of the table, padding included.
  template <class Factor>
  void expect(MatrixView<float const> got, Factor factor) const {
    for (std::size_t i = 0; i < got.rows(); ++i) {
      for (std::size_t j = 0; j < got.stride(); ++j) {
        ASSERT_EQ(got.row(i)[j], factor(i) * value(i, j)) << "row " << i << ", column " << j;
      }
    }
  }

  Stream stream_{Device::host(), 2};
  std::size_t const dim_ = GetParam().dim, stride_ = row_stride(dim_);
  std::size_t n_ = 1001;
  std::vector<float> values_;
  RowStorage<float> table_;
  std::vector<std::uint32_t> numbers_;
  Array<std::uint32_t> ids_;
  Matrix<float> out_;
};

float once(std::size_t) { return 1; }

TEST_P(NontemporalResults, GatherCopiesRows) {
  gather(stream_, {table_.const_ref(), ids_, out_});
  expect(out_, once);
}

TEST_P(NontemporalResults, GatherSkipsAbsentRows) {
  for (std::size_t i = 0; i < n_; i += 3) ids_[i] = kNoRow;
  gather(stream_, {table_.const_ref(), ids_, out_});
  for (std::size_t i = 0; i < n_; ++i) {
    float const untouched = std::bit_cast<float>(0x01010101);
    ASSERT_EQ(out_.row(i)[0], i % 3 == 0 ? untouched : value(i, 0)) << i;
  }
}

TEST_P(NontemporalResults, ScatterCopiesRows) {
  gather(stream_, {table_.const_ref(), ids_, out_});
  RowStorage<float> to(stream_.device(), stride_, NewRows::kUndefined);
  to.reserve(stream_, n_);
  test::Random random(6);
  auto const places = test::distinct_ids(random, n_, n_);
  Array<std::uint32_t> const places_there = to_device(stream_, places);
  scatter(stream_, {out_, places_there, to.ref(), dim_});
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < stride_; ++j) ASSERT_EQ(to.ref().row(places[i])[j], value(i, j));
  }
}

TEST_P(NontemporalResults, GatherAndScatterOfMatrixRowsCopyRows) {
  auto const from = test::matrix(stream_, values_, kTableRows, dim_);
  Matrix<float> taken(stream_.device(), n_, dim_);
  memory::fill_bytes(stream_, taken.view().data(), 0, taken.view().flat().bytes());
  gather_matrix_rows(stream_, {.from = from, .positions = ids_, .to = taken});
  expect(taken, once);
  test::Random random(7);
  auto const places = test::distinct_ids(random, n_, n_);
  Array<std::uint32_t> const places_there = to_device(stream_, places);
  scatter_matrix_rows(stream_, {.from = taken, .positions = places_there, .to = out_});
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < stride_; ++j) ASSERT_EQ(out_.row(places[i])[j], value(i, j));
  }
}

TEST_P(NontemporalResults, PoolingBagsOfOneEntryCopiesRows) {
  auto const from = test::matrix(stream_, values_, kTableRows, dim_);
  gather_pooled(stream_, {.rows = from, .positions = ids_, .offsets = {}, .mean = false, .out = out_});
  expect(out_, once);
}

// Bags of one weighted entry; every tenth bag is empty.
TEST_P(NontemporalResults, PoolingWithWeightsMultipliesRows) {
  std::vector<std::uint32_t> offsets{0};
  std::vector<float> weights;
  for (std::size_t i = 0; i < n_; ++i) {
    weights.push_back(static_cast<float>(i % 7) - 3);
    offsets.push_back(offsets.back() + (i % 10 == 9 ? 0 : 1));
    if (i % 10 != 9) numbers_[offsets.back() - 1] = numbers_[i];
  }
  auto const compact = to_device(stream_, numbers_);
  auto const weights_there = to_device(stream_, weights);
  auto const offsets_there = to_device(stream_, offsets);
  PooledTable const table{.rows = table_.const_ref(),
                          .ids = compact.view().slice(0, offsets.back()),
                          .offsets = offsets_there,
                          .weights = weights_there,
                          .out = out_};
  find_pooled(stream_, {{&table, 1}});
  for (std::size_t b = 0; b < n_; ++b) {
    std::uint32_t const e = offsets[b];
    for (std::size_t j = 0; j < stride_; ++j) {
      float const want = b % 10 == 9 ? 0 : weights[e] * values_[numbers_[e] * stride_ + j];
      ASSERT_EQ(out_.view().row(b)[j], want) << "bag " << b << ", column " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NontemporalResults,
                         testing::Values(Shape{3, false}, Shape{16, false}, Shape{32, false}, Shape{64, false},
                                         Shape{100, false}, Shape{128, false}, Shape{3, true}, Shape{16, true},
                                         Shape{32, true}, Shape{64, true}, Shape{100, true}, Shape{128, true}),
                         [](auto const& chosen) {
                           return std::to_string(chosen.param.dim) + (chosen.param.large ? "Large" : "Small");
                         });

}  // namespace
}  // namespace gpups::kernels::nontemporal_results_test
