// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/triple_queries.hpp"

#include "kernels/runtime/launch.hpp"
#include "kernels/score/distance_math.hpp"
#include "kernels/score/distance_triple.hpp"
#include "kernels/score/matrix_triple.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, ExpandTriples const& g) {
  each(ex, g.triples.size() / 3, [g] GPUPS_FN(std::size_t i) {
    std::size_t const first = i * g.entries_per_triple;
    auto const source = static_cast<std::uint32_t>(kSourcesPerTriple * i);
    g.entity_keys[first] = g.entities[g.triples[3 * i]];
    g.entity_keys[first + 1] = g.entities[g.triples[3 * i + 2]];
    if (!g.entity_sources.empty()) {
      g.entity_sources[first] = source + kSubjectGradient;
      g.entity_sources[first + 1] = source + kObjectGradient;
    }
    g.relation_keys[i] = g.relations[g.triples[3 * i + 1]];
    g.relation_sources[i] = g.own_relation_sources ? static_cast<std::uint32_t>(i) : source + kRelationGradient;
  });
}

GPUPS_KERNEL(expand_triples, ExpandTriples)

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

// Sets the gradient of the query for subjects to 0, if there is none.
template <class Lanes>
GPUPS_FN inline void clear_unused(Lanes lanes, bool objects_only, TripleRows const& t) {
  if (!objects_only) return;
  lanes.each(t.stride, [=, row = t.object_gradient](std::size_t k) { row[k] = 0.0F; });
  lanes.sync();
}

template <class Triple, Space S>
void finish_triples_of(Exec<S> ex, FinishTriples const& g) {
  each_row(ex, g.slopes.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    TripleRows const rows =
        triple_rows(g.subjects.row(i), g.relations.row(i), g.objects.row(i), g.sources, g.relation_sources, i);
    clear_unused(lanes, g.objects_only, rows);
    float const regular = Triple::finish(lanes, g.regulariser, g.slopes[i], rows);
    if (lanes.first()) g.losses[i] += loss_units(regular * g.loss_scale);
  });
}

// The gradients of the queries are in the rows for the gradients of subject and object, without the part of the
// positive.
template <class Score, Space S>
void finish_distances_of(Exec<S> ex, FinishTriples const& g) {
  each_row(ex, g.slopes.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    using Triple = DistanceTriple<Score, float>;
    using N = typename Triple::N;
    TripleRows const t =
        triple_rows(g.subjects.row(i), g.relations.row(i), g.objects.row(i), g.sources, g.relation_sources, i);
    clear_unused(lanes, g.objects_only, t);
    float const regular = Triple::finish(lanes, g.regulariser, g.slopes[i], t, [=](std::size_t k) {
      std::size_t const count = N::count(t.dim);
      return QueryPair<N>{N::at(t.subject_gradient, k, count), N::at(t.object_gradient, k, count)};
    });
    if (lanes.first()) g.losses[i] += loss_units(regular * g.loss_scale);
  });
}

template <Space S>
void run(Exec<S> ex, FinishTriples const& g) {
  switch (g.algebra) {
    case Algebra::kReal:
      return finish_triples_of<NumberTriple<RealNumber<float>>>(ex, g);
    case Algebra::kComplex:
      return finish_triples_of<NumberTriple<ComplexNumber<float>>>(ex, g);
    case Algebra::kMatrix:
      return finish_triples_of<MatrixTriple>(ex, g);
    case Algebra::kTranslationL1:
    case Algebra::kTranslationL2:
    case Algebra::kRotation:
      with_distance(g.algebra, [&](auto score) { finish_distances_of<decltype(score)>(ex, g); });
  }
}

GPUPS_KERNEL(finish_triples, FinishTriples)

}  // namespace gpups::kernels
