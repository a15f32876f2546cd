// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/step_triples.hpp"

#include "kernels/score/each_triple.hpp"
#include "kernels/score/matrix_triple.hpp"
#include "kernels/score/step_distances.hpp"
#include "kernels/score/step_triples_host.hpp"

namespace gpups::kernels {

template <class Triple, Space S>
void step_triples_of(Exec<S> ex, StepTriples const& g) {
  each_row(ex, g.relation_rows.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const n = g.negatives, stride = g.entities.stride();
    std::uint32_t const* const rows = g.entity_rows.data() + i * (2 + 2 * n);
    float* const coefficients = g.coefficients.data() + i * (2 + 2 * n);
    TripleRows const t = triple_rows(g.entities.row(rows[0]), g.relations.row(g.relation_rows[i]),
                                     g.entities.row(rows[1]), g.sources, g.relation_sources, i);
    float const *const o = t.object, *const q = t.object_query, *const p = t.subject_query;
    float *const gs = t.subject_gradient, *const go = t.object_gradient;

    Triple::write_queries(lanes, t);
    lanes.sync();
    float const positive = lanes.sum(stride, [=](std::size_t k) { return q[k] * o[k]; });
    for (std::size_t j = 0; j < 2 * n; ++j) {
      float const* const query = j < n ? q : p;
      float const* const negative = g.entities.row(rows[2 + j]);
      float const score = lanes.sum(stride, [=](std::size_t k) { return query[k] * negative[k]; });
      if (lanes.first()) coefficients[2 + j] = score;
    }
    if (lanes.first()) coefficients[0] = coefficients[1] = 1.0F;
    lanes.sync();
    SideLoss const at = triple_loss(lanes, g.loss, positive, coefficients + 2, coefficients + 2 + n, n, rows + 2,
                                    rows + 2 + n, rows[1], rows[0]);
    lanes.sync();
    lanes.each(stride, [=](std::size_t k) {
      float dq = 0.0F, dp = 0.0F;
      for (std::size_t j = 0; j < n; ++j) {
        dq = multiply_add(coefficients[2 + j], g.entities.row(rows[2 + j])[k], dq);
        dp = multiply_add(coefficients[2 + n + j], g.entities.row(rows[2 + n + j])[k], dp);
      }
      gs[k] = dq;
      go[k] = dp;
    });
    lanes.sync();
    float const regular = Triple::finish(lanes, g.regulariser, at.slope, t);
    if (lanes.first()) g.losses[i] = loss_units(at.loss) + loss_units(regular);
    note_largest_source(lanes, g, i);
  });
}

template <Space S>
void run(Exec<S> ex, StepTriples const& g) {
  if (is_distance(g.algebra)) return step_distances(ex, g);
  bool const complex = g.algebra == Algebra::kComplex;
  if (g.algebra == Algebra::kMatrix) return step_triples_of<MatrixTriple>(ex, g);
#ifndef __CUDACC__
  if (g.entities.columns() / (complex ? 2 : 1) >= kLanes) {
    return complex ? each_triple<HostTripleStep<ComplexNumber<Vector>>>(ex, g)
                   : each_triple<HostTripleStep<RealNumber<Vector>>>(ex, g);
  }
#endif
  complex ? step_triples_of<NumberTriple<ComplexNumber<float>>>(ex, g)
          : step_triples_of<NumberTriple<RealNumber<float>>>(ex, g);
}

GPUPS_KERNEL(step_triples, StepTriples)

}  // namespace gpups::kernels
