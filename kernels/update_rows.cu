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

#ifdef __CUDACC__
// Updates rows whose values have type T by one kind of optimizer. Each kind has a kernel, so that none reserves the
// registers of the others.
template <class T, Optimizer::Kind K>
void update_by(DeviceExec ex, UpdateRows const& u) {
  double const unit = std::ldexp(u.scale, u.grid_log2);
  each_row(ex, u.ids.size(), [u, unit] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    UpdateRows by_kind = u;
    by_kind.optimizer.kind = K;  // a constant
    update_row_of<T>(lanes, by_kind, u.ids[i], MeanOfUnits{u.sums.row(i), unit});
  });
}

template <class T>
void update(DeviceExec ex, UpdateRows const& u) {
  using Kind = Optimizer::Kind;
  switch (u.optimizer.kind) {
    case Kind::kSgd:
      return update_by<T, Kind::kSgd>(ex, u);
    case Kind::kAdagrad:
      return update_by<T, Kind::kAdagrad>(ex, u);
    case Kind::kRowwiseAdagrad:
      return update_by<T, Kind::kRowwiseAdagrad>(ex, u);
    case Kind::kAdam:
      return update_by<T, Kind::kAdam>(ex, u);
    case Kind::kLamb:
      return update_by<T, Kind::kLamb>(ex, u);
    case Kind::kFtrl:
      return update_by<T, Kind::kFtrl>(ex, u);
  }
}
#else
template <class T>
void update(HostExec ex, UpdateRows const& u) {
  double const unit = std::ldexp(u.scale, u.grid_log2);
  each_row(ex, u.ids.size(), [u, unit](std::size_t i, HostLanes lanes) {
    if (i + kRowsAhead < u.ids.size()) prefetch_row(u, u.ids[i + kRowsAhead]);
    update_row_of<T>(lanes, u, u.ids[i], MeanOfUnits{u.sums.row(i), unit});
  });
}
#endif

template <Space S>
void run(Exec<S> ex, UpdateRows const& u) {
  GPUPS_ASSERT(u.sums.rows() >= u.ids.size() && u.sums.columns() >= u.dim);
  GPUPS_ASSERT(u.values.stride >= row_stride(u.dim) && (u.values.type == DataType::kFloat || u.keys.stride == 1));
  with_number(u.values.type, [&]<class T>() { update<T>(ex, u); });
}

GPUPS_KERNEL(update_rows, UpdateRows)

}  // namespace gpups::kernels
