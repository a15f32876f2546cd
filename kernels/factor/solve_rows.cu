// SPDX-License-Identifier: Apache-2.0
#include "kernels/factor/solve_rows.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/base/vector.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/activation.hpp"

namespace gpups::kernels {

// A team computes a row of a block's sum.
template <Space S>
void run(Exec<S> ex, Gramian const& g) {
  std::size_t const dim = g.rows.columns(), blocks = gramian_blocks(g.rows.rows());
  GPUPS_ASSERT(g.out.rows() >= blocks * dim && g.out.columns() == dim);
  each_row(ex, blocks * dim, [g, dim] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float* const out = g.out.row(i);
    lanes.each(dim, [=](std::size_t j) { out[j] = 0; });
    std::size_t const first = i / dim * kGramianRows, left = g.rows.rows() - first;
    std::size_t const end = first + (left < kGramianRows ? left : kGramianRows);
    for (std::size_t r = first; r < end; ++r) {
      float const* const row = g.rows.row(r);
      float const of_row = row[i % dim];
      lanes.each(dim, [=](std::size_t j) { out[j] = multiply_add(of_row, row[j], out[j]); });
    }
  });
}

GPUPS_KERNEL(gramian, Gramian)

// A squared norm that counts as 0. Smaller ones would make steps infinite.
inline constexpr float kTiny = 1e-30F;

// The system of one row. All lanes of a team call its functions. Vectors have dim numbers.
template <class Lanes>
struct RowSystem {
  SolveRows const& all;
  Lanes lanes;
  std::uint32_t first, end;  // the row's interactions
  float diagonal;            // what l2 adds

  GPUPS_FN float const* other(std::uint32_t e) const { return all.others.row(all.interactions[e]); }
  GPUPS_FN std::size_t dim() const { return all.others.columns(); }
  GPUPS_FN float dot(float const* a, float const* b) const {
    return lanes.sum(dim(), [=](std::size_t j) { return a[j] * b[j]; });
  }
  // y += a x
  GPUPS_FN void add(float a, float const* x, float* y) const {
    lanes.each(dim(), [=](std::size_t j) { y[j] = multiply_add(a, x[j], y[j]); });
  }
  // y = the matrix times x
  GPUPS_FN void multiply(float const* x, float* y) const {
    float const a = diagonal;
    lanes.each(dim(), [=](std::size_t j) { y[j] = a * x[j]; });
    for (std::size_t k = 0; k < dim(); ++k) add(x[k], all.gramian.row(k), y);
    for (std::uint32_t e = first; e < end; ++e) add(dot(other(e), x), other(e), y);
  }
  // Solves for x, which has the start. r, p, q: scratch.
  GPUPS_FN void solve(float* x, float* r, float* p, float* q) const {
    lanes.each(dim(), [=](std::size_t j) { r[j] = 0; });
    for (std::uint32_t e = first; e < end; ++e) add(1, other(e), r);
    float const tolerance = kSolveTolerance * dot(r, r) + kTiny;
    multiply(x, q);
    add(-1, q, r);
    lanes.each(dim(), [=](std::size_t j) { p[j] = r[j]; });
    float residual = dot(r, r);
    for (int i = 0; i < kSolveIterationsMax && residual > tolerance; ++i) {
      multiply(p, q);
      float const step = residual / dot(p, q);
      add(step, p, x);
      add(-step, q, r);
      float const next = dot(r, r), beta = next / residual;
      lanes.each(dim(), [=](std::size_t j) { p[j] = multiply_add(beta, p[j], r[j]); });
      residual = next;
    }
  }
  GPUPS_FN std::int64_t loss(float const* x) const {
    double sum = 0;
    for (std::uint32_t e = first; e < end; ++e) sum += static_cast<double>(1 - dot(other(e), x));
    return first == end ? 0 : loss_units(sum < 0 ? 0 : sum / (end - first));
  }
};

template <Space S>
void run(Exec<S> ex, SolveRows const& s) {
  std::size_t const rows = s.solved.size(), dim = s.others.columns();
  GPUPS_ASSERT(s.rows.columns() == dim && s.gramian.rows() == dim && s.gramian.columns() == dim);
  GPUPS_ASSERT(s.changes.rows() >= rows && s.scratch.rows() >= solve_scratch_rows(rows) && s.losses.size() >= rows);
  GPUPS_ASSERT(s.offsets.size() == rows + 1);
  each_row(ex, rows, [s, dim] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::uint32_t const first = s.offsets[i], end = s.offsets[i + 1];
    RowSystem<NativeLanes> const system{s, lanes, first, end, s.l2 * (static_cast<float>(end - first) + s.unobserved)};
    float* const x = s.changes.row(i);
    float const* const old = s.rows.row(s.solved[i]);
    lanes.each(dim, [=](std::size_t j) { x[j] = old[j]; });
    system.solve(x, s.scratch.row(3 * i), s.scratch.row(3 * i + 1), s.scratch.row(3 * i + 2));
    std::int64_t const loss = system.loss(x);
    if (lanes.first()) s.losses[i] = loss;
    float const factor = s.factor;
    lanes.each(dim, [=](std::size_t j) { x[j] = factor * (old[j] - x[j]); });
  });
}

GPUPS_KERNEL(solve_rows, SolveRows)

}  // namespace gpups::kernels
