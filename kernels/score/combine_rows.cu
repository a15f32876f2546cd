// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/combine_rows.hpp"

#include "kernels/score/distance_math.hpp"
#include "kernels/score/matrix_triple.hpp"

namespace gpups::kernels {

template <class N, Space S>
void combine_rows_of(Exec<S> ex, CombineRows const& g) {
  each_row(ex, g.out.rows(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const dim = g.out.columns(), count = N::count(dim);
    float const* const left = g.left.row(i);
    float const* const right = g.right.row(i);
    float* const out = g.out.row(i);
    lanes.each(count, [=, conjugate = g.conjugate](std::size_t k) {
      N const a = N::at(left, k, count), b = N::at(right, k, count);
      (conjugate ? product_conj(a, b) : product(a, b)).put(out, k, count);
    });
    lanes.each(row_stride(dim) - dim, [=](std::size_t k) { out[dim + k] = 0.0F; });
  });
}

template <Space S>
void multiply_matrices(Exec<S> ex, CombineRows const& g) {
  each_row(ex, g.out.rows(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const dim = g.out.columns();
    float* const out = g.out.row(i);
    if (g.conjugate) {
      matrix_times_column(lanes, g.right.row(i), g.left.row(i), dim, out);
    } else {
      row_times_matrix(lanes, g.left.row(i), g.right.row(i), dim, out);
    }
    lanes.each(row_stride(dim) - dim, [=](std::size_t k) { out[dim + k] = 0.0F; });
  });
}

template <class Relation, Space S>
void move_rows(Exec<S> ex, CombineRows const& g) {
  each_row(ex, g.out.rows(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    using N = typename Relation::Number;
    std::size_t const dim = g.out.columns(), count = N::count(dim);
    float const *const left = g.left.row(i), *const right = g.right.row(i);
    float* const out = g.out.row(i);
    lanes.each(count, [=, back = g.conjugate](std::size_t k) {
      Relation const r = Relation::at(right, k);
      N const x = N::at(left, k, count);
      (back ? r.moved_back(x) : r.moved(x)).put(out, k, count);
    });
    lanes.each(row_stride(dim) - dim, [=](std::size_t k) { out[dim + k] = 0.0F; });
  });
}

template <Space S>
void run(Exec<S> ex, CombineRows const& g) {
  if (g.algebra == Algebra::kRotation) return move_rows<Rotation<float>>(ex, g);
  if (is_distance(g.algebra)) return move_rows<Translation<float>>(ex, g);
  if (g.algebra == Algebra::kMatrix) return multiply_matrices(ex, g);
  g.algebra == Algebra::kComplex ? combine_rows_of<ComplexNumber<float>>(ex, g)
                                 : combine_rows_of<RealNumber<float>>(ex, g);
}

GPUPS_KERNEL(combine_rows, CombineRows)

}  // namespace gpups::kernels
