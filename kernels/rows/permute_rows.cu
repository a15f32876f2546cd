// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/permute_rows.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/rows/copy_rows.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, GatherMatrixRows const& t) {
  std::size_t const n = t.positions.size(), dim = t.to.columns();
  GPUPS_ASSERT(t.to.rows() >= n && t.from.columns() >= dim);
  copy_rows(ex, n, {dim, dim}, MatrixRowsAt<float const>{t.from, t.positions}, MatrixRows<float>{t.to});
  if (t.flags_to.empty()) return;
  each(ex, n, [t] GPUPS_FN(std::size_t i) { t.flags_to[i] = t.flags_from[t.positions[i]]; });
}

template <Space S>
void run(Exec<S> ex, ScatterMatrixRows const& p) {
  GPUPS_ASSERT(p.from.rows() >= p.positions.size() && p.from.columns() >= p.to.columns());
  copy_rows(ex, p.positions.size(), {p.to.columns(), p.to.stride()}, MatrixRows<float const>{p.from},
            MatrixRowsAt<float>{p.to, p.positions});
}

GPUPS_KERNEL(gather_matrix_rows, GatherMatrixRows)
GPUPS_KERNEL(scatter_matrix_rows, ScatterMatrixRows)

}  // namespace gpups::kernels
