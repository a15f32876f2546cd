// SPDX-License-Identifier: Apache-2.0
#include "kernels/scatter.hpp"

#include "kernels/assert.hpp"
#include "kernels/copy_rows.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, Scatter const& s) {
  GPUPS_ASSERT(s.from.rows() >= s.ids.size() && s.from.columns() >= s.dim && s.rows.stride >= s.dim);
  copy_rows(ex, s.ids.size(), {s.dim, s.rows.stride}, MatrixRows<float const>{s.from}, TableRows<float>{s.rows, s.ids});
}

GPUPS_KERNEL(scatter, Scatter)

}  // namespace gpups::kernels
