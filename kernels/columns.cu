// SPDX-License-Identifier: Apache-2.0
#include "kernels/columns.hpp"

#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S, class T>
void run(Exec<S> ex, GatherColumn<T> const& g) {
  std::size_t const stride = g.rows.stride;
  if (stride == 0) return;
  each(ex, g.ids.size() * stride,
       [g, stride] GPUPS_FN(std::size_t i) { g.out[i] = g.rows.row(g.ids[i / stride])[i % stride]; });
}

template <Space S, class T>
void run(Exec<S> ex, ScatterColumn<T> const& s) {
  std::size_t const stride = s.rows.stride;
  if (stride == 0) return;
  each(ex, s.ids.size() * stride,
       [s, stride] GPUPS_FN(std::size_t i) { s.rows.row(s.ids[i / stride])[i % stride] = s.from[i]; });
}

GPUPS_KERNEL(gather_column, GatherColumn<float>)
GPUPS_KERNEL(gather_column, GatherColumn<std::uint32_t>)
GPUPS_KERNEL(gather_column, GatherColumn<std::uint64_t>)
GPUPS_KERNEL(scatter_column, ScatterColumn<float>)
GPUPS_KERNEL(scatter_column, ScatterColumn<std::uint32_t>)

}  // namespace gpups::kernels
