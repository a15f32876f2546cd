// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/interactions.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, CopyColumns const& c) {
  GPUPS_ASSERT(c.to.rows() >= c.from.rows() && c.to.columns() >= c.from.columns());
  each_row(ex, c.from.rows(), [c] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const from = c.from.row(i);
    float* const to = c.to.row(i);
    if (c.add) {
      lanes.each(c.from.columns(), [=](std::size_t j) { to[j] += from[j]; });
    } else {
      lanes.each(c.from.columns(), [=](std::size_t j) { to[j] = from[j]; });
    }
  });
}

GPUPS_KERNEL(copy_columns, CopyColumns)

template <Space S>
void run(Exec<S> ex, CrossForward const& g) {
  GPUPS_ASSERT(g.x0.rows() >= g.out.rows() && g.u.rows() >= g.out.rows() && g.x.rows() >= g.out.rows());
  each_row(ex, g.out.rows(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const *const x0 = g.x0.row(i), *const u = g.u.row(i), *const x = g.x.row(i);
    float* const out = g.out.row(i);
    lanes.each(g.out.columns(), [=](std::size_t j) { out[j] = x0[j] * u[j] + x[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, CrossBackward const& g) {
  std::size_t const m = g.out_gradient.rows();
  GPUPS_ASSERT(g.x0.rows() >= m && g.u.rows() >= m && g.u_gradient.rows() >= m);
  GPUPS_ASSERT(g.x0_gradient.rows() >= m && g.x_gradient.rows() >= m);
  each_row(ex, m, [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const *const x0 = g.x0.row(i), *const u = g.u.row(i), *const gradient = g.out_gradient.row(i);
    float *const of_u = g.u_gradient.row(i), *const of_x0 = g.x0_gradient.row(i), *const of_x = g.x_gradient.row(i);
    lanes.each(g.out_gradient.columns(), [=](std::size_t j) {
      float const by_out = gradient[j];
      of_x0[j] += by_out * u[j];
      of_u[j] = by_out * x0[j];
      of_x[j] = by_out;
    });
  });
}

GPUPS_KERNEL(cross_forward, CrossForward)
GPUPS_KERNEL(cross_backward, CrossBackward)

// The sums of `kWide` columns from `column` on over the vectors of sample i, and the sums of their squares, in
// registers.
template <std::size_t kWide>
struct ColumnSums {
  float sum[kWide] = {};
  float squares[kWide] = {};

  template <class Factorization>
  GPUPS_FN ColumnSums(Factorization const& g, std::size_t i, std::size_t column) {
    std::size_t const stride = row_stride(g.dim);
    float const* const vectors = g.rows.row(i) + column;
    for (std::size_t f = g.first_slot; f < g.slots; ++f) {
      for (std::size_t k = 0; k < kWide; ++k) {
        float const x = vectors[f * stride + k];
        sum[k] += x;
        squares[k] += x * x;
      }
    }
  }
};

// Calls act(sums, first) with the ColumnSums that begin at column `first`, for all columns of a vector including
// padding.
template <class Factorization, class Act>
GPUPS_FN inline void each_column(NativeLanes lanes, Factorization const& g, std::size_t i, Act act) {
  std::size_t const stride = row_stride(g.dim);
#ifdef __CUDACC__
  lanes.each(stride, [&](std::size_t k) { act(ColumnSums<1>(g, i, k), k); });
#else
  (void)lanes;
  std::size_t k = 0;
  for (; k + kLanes <= stride; k += kLanes) act(ColumnSums<kLanes>(g, i, k), k);
  for (; k < stride; k += 4) act(ColumnSums<4>(g, i, k), k);
#endif
}

template <Space S>
void run(Exec<S> ex, FactorizationForward const& g) {
  GPUPS_ASSERT(g.dim > 0 && g.rows.rows() >= g.out.size() && g.rows.stride() >= g.slots * row_stride(g.dim));
  each_row(ex, g.out.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
#ifdef __CUDACC__
    float const sum = lanes.sum(row_stride(g.dim), [&](std::size_t k) {
      ColumnSums<1> const of(g, i, k);
      return of.sum[0] * of.sum[0] - of.squares[0];
    });
#else
    float part[kLanes] = {};
    each_column(lanes, g, i, [&](auto const& of, std::size_t first) {
      for (std::size_t k = 0; k < std::size(of.sum); ++k) {
        part[(first + k) % kLanes] += of.sum[k] * of.sum[k] - of.squares[k];
      }
    });
    float const sum = lanes.sum(kLanes, [&](std::size_t k) { return part[k]; });
#endif
    if (lanes.first()) g.out[i] = 0.5F * sum;
  });
}

template <Space S>
void run(Exec<S> ex, FactorizationBackward const& g) {
  GPUPS_ASSERT(g.dim > 0 && g.rows.rows() >= g.out_gradient.size());
  GPUPS_ASSERT(g.rows.stride() >= g.slots * row_stride(g.dim));
  GPUPS_ASSERT(g.rows_gradient.stride() >= g.slots * row_stride(g.dim));
  each_row(ex, g.out_gradient.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const gradient = g.out_gradient[i];
    each_column(lanes, g, i, [&](auto const& of, std::size_t first) {
      std::size_t const stride = row_stride(g.dim);
      float const* const vectors = g.rows.row(i) + first;
      float* const to = g.rows_gradient.row(i) + first;
      for (std::size_t f = g.first_slot; f < g.slots; ++f) {
        for (std::size_t k = 0; k < sizeof(of.sum) / sizeof(float); ++k) {
          to[f * stride + k] += gradient * (of.sum[k] - vectors[f * stride + k]);
        }
      }
    });
  });
}

GPUPS_KERNEL(factorization_forward, FactorizationForward)
GPUPS_KERNEL(factorization_backward, FactorizationBackward)

}  // namespace gpups::kernels
