// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/shared_loss.hpp"

#include "kernels/score/distance_triple.hpp"

namespace gpups::kernels {

GPUPS_FN inline float score_of(NativeLanes lanes, Algebra algebra, float margin, float const* query, float const* row,
                               std::size_t dim) {
  switch (algebra) {
    case Algebra::kTranslationL1:
      return margin - DistanceTriple<TranslationL1, float>::distance(lanes, query, row, dim);
    case Algebra::kTranslationL2:
      return margin - DistanceTriple<TranslationL2, float>::distance(lanes, query, row, dim);
    case Algebra::kRotation:
      return margin - DistanceTriple<RotationModuli, float>::distance(lanes, query, row, dim);
    default:
      return lanes.sum(row_stride(dim), [=](std::size_t k) { return query[k] * row[k]; });
  }
}

template <Space S>
void run(Exec<S> ex, SharedLoss const& g) {
  each_row(ex, g.losses.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const query = g.queries.row(i);
    float const* const object = g.objects.row(i);
    float const positive = score_of(lanes, g.algebra, g.margin, query, object, g.objects.rows.columns());
    std::uint32_t const* const negatives = g.negative_rows.data();
    SideLoss const at =
        triple_loss(lanes, g.loss, positive, g.of_objects.row(i), g.objects_only ? nullptr : g.of_subjects.row(i),
                    g.negatives, negatives, g.objects_only ? nullptr : negatives + g.negatives,
                    g.positive_rows[2 * i + 1], g.positive_rows[2 * i]);
    if (lanes.first()) {
      g.slopes[i] = at.slope;
      g.losses[i] = loss_units(at.loss);
    }
  });
}

GPUPS_KERNEL(shared_loss, SharedLoss)

}  // namespace gpups::kernels
