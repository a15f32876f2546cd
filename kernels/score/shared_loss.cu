// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/shared_loss.hpp"

#include "kernels/score/triple_math.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, SharedLoss const& g) {
  each_row(ex, g.losses.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const query = g.queries.row(i);
    float const* const object = g.objects.row(i);
    float const positive =
        lanes.sum(row_stride(g.objects.rows.columns()), [=](std::size_t k) { return query[k] * object[k]; });
    std::uint32_t const* const negatives = g.negative_rows.data();
    SideLoss const at =
        triple_loss(lanes, g.loss, positive, g.of_objects.row(i), g.of_subjects.row(i), g.negatives, negatives,
                    negatives + g.negatives, g.positive_rows[2 * i + 1], g.positive_rows[2 * i]);
    if (lanes.first()) {
      g.slopes[i] = at.slope;
      g.losses[i] = loss_units(at.loss);
    }
  });
}

GPUPS_KERNEL(shared_loss, SharedLoss)

}  // namespace gpups::kernels
