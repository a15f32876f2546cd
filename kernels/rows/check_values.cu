// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/check_values.hpp"

#include <bit>
#include <limits>

#include "kernels/base/atomic.hpp"
#include "kernels/base/max_abs.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, CheckValues const& c) {
  each(ex, 1, [bad_row = c.bad_row] GPUPS_FN(std::size_t) { bad_row[0] = kNoRow; });
  each_row(ex, c.rows.rows(), [c] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const most = max_abs(lanes, c.rows.row(i), c.rows.columns());
    if (lanes.first() && !(most <= c.limit)) atomic_min(c.bad_row.data(), static_cast<std::uint32_t>(i));
  });
}

GPUPS_KERNEL(check_values, CheckValues)

#ifndef __CUDACC__
float largest_kept(DataType type) {
  if (type == DataType::kHalf) return std::bit_cast<float>(0x477FEFFFU);  // below 65,520
  if (type == DataType::kBFloat16)
    return std::bit_cast<float>(0x7F7F7FFFU);  // below the middle between the largest finite number and 2^128
  return std::numeric_limits<float>::max();
}
#endif

}  // namespace gpups::kernels
