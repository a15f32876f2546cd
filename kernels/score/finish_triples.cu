// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/finish_triples.hpp"

#include "kernels/score/distance_triple.hpp"
#include "kernels/score/matrix_triple.hpp"

namespace gpups::kernels {

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
