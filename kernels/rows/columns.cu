// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/columns.hpp"

#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// Columns with fewer elements are copied by element, others by row.
constexpr std::size_t kWideColumn = 8;

template <Space S, class T>
void run(Exec<S> ex, GatherColumn<T> const& g) {
  std::size_t const stride = g.rows.stride;
  if (stride == 0) return;
  if (stride < kWideColumn) {
    return each(ex, g.ids.size() * stride,
                [g, stride] GPUPS_FN(std::size_t i) { g.out[i] = g.rows.row(g.ids[i / stride])[i % stride]; });
  }
  each_row(ex, g.ids.size(), [g, stride] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    T const* const from = g.rows.row(g.ids[i]);
    lanes.each(stride, [&](std::size_t j) { g.out[i * stride + j] = from[j]; });
  });
}

template <Space S, class T>
void run(Exec<S> ex, ScatterColumn<T> const& s) {
  std::size_t const stride = s.rows.stride;
  if (stride == 0) return;
  if (stride < kWideColumn) {
    return each(ex, s.ids.size() * stride,
                [s, stride] GPUPS_FN(std::size_t i) { s.rows.row(s.ids[i / stride])[i % stride] = s.from[i]; });
  }
  each_row(ex, s.ids.size(), [s, stride] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    T* const to = s.rows.row(s.ids[i]);
    lanes.each(stride, [&](std::size_t j) { to[j] = s.from[i * stride + j]; });
  });
}

GPUPS_KERNEL(gather_column, GatherColumn<float>)
GPUPS_KERNEL(gather_column, GatherColumn<std::uint32_t>)
GPUPS_KERNEL(gather_column, GatherColumn<std::uint64_t>)
GPUPS_KERNEL(scatter_column, ScatterColumn<float>)
GPUPS_KERNEL(scatter_column, ScatterColumn<std::uint32_t>)

}  // namespace gpups::kernels
