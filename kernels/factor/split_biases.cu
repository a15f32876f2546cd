// SPDX-License-Identifier: Apache-2.0
#include "kernels/factor/split_biases.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, SplitBiases const& s) {
  GPUPS_ASSERT(s.rows.columns() > 0 && s.sources.columns() == s.rows.columns() && s.sources.rows() >= s.rows.rows());
  GPUPS_ASSERT(s.biases.empty() || s.biases.size() >= s.rows.rows());
  std::size_t const last = s.rows.columns() - 1, stride = s.sources.stride();
  each_row(ex, s.rows.rows(), [s, last, stride] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const from = s.rows.row(i);
    float* const to = s.sources.row(i);
    lanes.each(stride, [=](std::size_t j) { to[j] = j < last ? from[j] : j == last ? 1.0F : 0.0F; });
    if (lanes.first() && !s.biases.empty()) s.biases[i] = s.mean + from[last];
  });
}

GPUPS_KERNEL(split_biases, SplitBiases)

}  // namespace gpups::kernels
