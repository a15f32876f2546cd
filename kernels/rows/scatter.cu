// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/scatter.hpp"

#include <type_traits>

#include "kernels/base/assert.hpp"
#include "kernels/rows/copy_rows.hpp"

namespace gpups::kernels {

template <class T, Space S>
void scatter_as(Exec<S> ex, Scatter const& s) {
  if constexpr (std::is_same_v<T, float>) {
    copy_rows(ex, s.ids.size(), {s.dim, s.rows.stride}, MatrixRows<float const>{s.from},
              TableRows<float>{s.rows.as<float>(), s.ids});
  } else {
    each_row(ex, s.ids.size(), [s] GPUPS_FN(std::size_t i, NativeLanes lanes) {
      if (s.ids[i] == kNoRow) return;
      float const* const from = s.from.row(i);
      T* const to = s.rows.as<T>().row(s.ids[i]);
      lanes.each(s.rows.stride, [=](std::size_t j) { to[j] = round_to<T>(j < s.dim ? from[j] : 0); });
    });
  }
}

template <Space S>
void run(Exec<S> ex, Scatter const& s) {
  GPUPS_ASSERT(s.from.rows() >= s.ids.size() && s.from.columns() >= s.dim && s.rows.stride >= s.dim);
  with_number(s.rows.type, [&]<class T>() { scatter_as<T>(ex, s); });
}

GPUPS_KERNEL(scatter, Scatter)

}  // namespace gpups::kernels
