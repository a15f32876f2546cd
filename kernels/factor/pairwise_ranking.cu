// SPDX-License-Identifier: Apache-2.0
#include "kernels/factor/pairwise_ranking.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/activation.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, PairwiseRanking const& r) {
  std::size_t const samples = r.user_rows.size(), together = 1 + r.negatives;
  GPUPS_ASSERT(r.negatives > 0 && r.item_rows.size() == samples * together && r.slopes.size() >= samples * together);
  GPUPS_ASSERT(r.users_of_items.size() >= samples * together && r.losses.size() >= samples);
  GPUPS_ASSERT(r.users.stride() == r.items.stride() && r.user_gradients.stride() == r.users.stride());
  each_row(ex, samples, [r, together] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const dim = r.users.columns(), stride = r.users.stride();
    std::uint32_t const user_row = r.user_rows[i];
    std::uint32_t const* const item_rows = r.item_rows.data() + i * together;
    std::uint32_t* const users_of_items = r.users_of_items.data() + i * together;
    float* const slopes = r.slopes.data() + i * together;
    float const* const user = r.users.row(user_row);
    float const share = 1.0F / static_cast<float>(r.negatives);

    float positive = 0, of_positive = 0;
    double loss = 0;
    for (std::size_t k = 0; k < together; ++k) {
      float const* const item = r.items.row(item_rows[k]);
      float const score = lanes.sum(dim, [=](std::size_t j) { return user[j] * item[j]; });
      if (k == 0) {
        positive = score;
      } else {
        Softplus const at = softplus(score - positive);
        loss += static_cast<double>(at.value);
        of_positive -= share * at.slope;
        if (lanes.first()) slopes[k] = share * at.slope;
      }
      if (lanes.first()) users_of_items[k] = user_row;
    }
    if (lanes.first()) {
      slopes[0] = of_positive;
      r.losses[i] = loss_units(loss / r.negatives);
    }
    lanes.sync();
    float* const gradient = r.user_gradients.row(i);
    lanes.each(stride, [=](std::size_t j) { gradient[j] = 0; });
    for (std::size_t k = 0; k < together; ++k) {
      float const* const item = r.items.row(item_rows[k]);
      float const slope = slopes[k];
      lanes.each(stride, [=](std::size_t j) { gradient[j] = multiply_add(slope, item[j], gradient[j]); });
    }
  });
}

GPUPS_KERNEL(pairwise_ranking, PairwiseRanking)

}  // namespace gpups::kernels
