// SPDX-License-Identifier: Apache-2.0
#include "kernels/update_rows.hpp"

#include "kernels/assert.hpp"
#include "kernels/update_row.hpp"

namespace gpups::kernels {

#ifndef __CUDACC__
std::size_t state_columns(Optimizer const& optimizer, std::size_t dim) {
  switch (optimizer.kind) {
    case Optimizer::Kind::kSgd:
      return 0;
    case Optimizer::Kind::kAdagrad:
      return row_stride(dim);
    case Optimizer::Kind::kRowwiseAdagrad:
      return 1;
    case Optimizer::Kind::kAdam:
    case Optimizer::Kind::kLamb:
    case Optimizer::Kind::kFtrl:
      return 2 * row_stride(dim);
  }
  return 0;
}

std::size_t accumulator_columns(Optimizer const& optimizer, std::size_t dim) {
  bool const all = optimizer.kind == Optimizer::Kind::kAdagrad || optimizer.kind == Optimizer::Kind::kFtrl;
  return all ? dim : optimizer.kind == Optimizer::Kind::kRowwiseAdagrad ? 1 : 0;
}
#endif

template <class T, Space S>
void update(Exec<S> ex, UpdateRows const& u) {
  double const unit = std::ldexp(u.scale, u.grid_log2);
  each_row(ex, u.ids.size(), [u, unit] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    if (i + kRowsAhead < u.ids.size()) prefetch_row(u, u.ids[i + kRowsAhead]);
    update_row_of<T>(lanes, u, u.ids[i], MeanOfUnits{u.sums.row(i), unit});
  });
}

template <Space S>
void run(Exec<S> ex, UpdateRows const& u) {
  GPUPS_ASSERT(u.sums.rows() >= u.ids.size() && u.sums.columns() >= u.dim);
  GPUPS_ASSERT(u.values.stride >= row_stride(u.dim) && (u.values.type == DataType::kFloat || u.keys.stride == 1));
  with_number(u.values.type, [&]<class T>() { update<T>(ex, u); });
}

GPUPS_KERNEL(update_rows, UpdateRows)

}  // namespace gpups::kernels
