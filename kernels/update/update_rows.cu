// SPDX-License-Identifier: Apache-2.0
#include "kernels/update/update_rows.hpp"

#include <map>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/segments.hpp"
#include "kernels/update/update_row.hpp"

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

// The rows of a table.
struct UpdatedRows {
  UpdateRows u;
  double unit;  // of the sums
};

#ifdef __CUDACC__
// Updates rows whose values have type T by one kind of optimizer. Each kind has a kernel, so that none reserves the
// registers of the others.
template <class T, Optimizer::Kind K>
void update_by(DeviceExec ex, std::vector<UpdatedRows> tables) {
  SegmentList const list(ex, std::move(tables), [](UpdatedRows const& r) { return r.u.ids.size(); });
  each_row_item(ex, list.segments(), [] GPUPS_FN(UpdatedRows const& r, std::size_t i, NativeLanes lanes) {
    if (!r.u.count.empty() && i >= r.u.count[0]) return;
    UpdateRows by_kind = r.u;
    by_kind.optimizer.kind = K;  // a constant
    update_row_of<T>(lanes, by_kind, r.u.ids[i], MeanOfUnits{r.u.sums_of(i), r.unit});
  });
}

template <class T>
void update(DeviceExec ex, Optimizer::Kind kind, std::vector<UpdatedRows> tables) {
  using Kind = Optimizer::Kind;
  switch (kind) {
    case Kind::kSgd:
      return update_by<T, Kind::kSgd>(ex, std::move(tables));
    case Kind::kAdagrad:
      return update_by<T, Kind::kAdagrad>(ex, std::move(tables));
    case Kind::kRowwiseAdagrad:
      return update_by<T, Kind::kRowwiseAdagrad>(ex, std::move(tables));
    case Kind::kAdam:
      return update_by<T, Kind::kAdam>(ex, std::move(tables));
    case Kind::kLamb:
      return update_by<T, Kind::kLamb>(ex, std::move(tables));
    case Kind::kFtrl:
      return update_by<T, Kind::kFtrl>(ex, std::move(tables));
  }
}
#else
template <class T>
void update(HostExec ex, Optimizer::Kind, std::vector<UpdatedRows> tables) {
  auto const rows_of = [](UpdatedRows const& r) { return r.u.count.empty() ? r.u.ids.size() : r.u.count[0]; };
  SegmentList const list(ex, std::move(tables), rows_of);
  each_item_range(ex, list.segments(), kBlockRows, [&](UpdatedRows const& rows, std::size_t first, std::size_t last) {
    UpdatedRows const r = rows;
    std::size_t const n = rows_of(r);
    bool const scattered = !r.u.positions.empty();
    for (std::size_t i = first; i < last; ++i) {
      if (i + kRowsAhead < n) {
        prefetch_row(r.u, r.u.ids[i + kRowsAhead]);
        // Without positions, the processor itself reads ahead.
        if (scattered) HostLanes{}.prefetch(r.u.sums_of(i + kRowsAhead), r.u.dim * sizeof(std::int64_t));
      }
      update_row_of<T>(HostLanes{}, r.u, r.u.ids[i], MeanOfUnits{r.u.sums_of(i), r.unit});
    }
  });
}
#endif

struct UpdateRowsOfAll {
  std::span<UpdateRows const> tables;
};

// Tables of one kind of optimizer and one data type are updated together.
template <Space S>
void run(Exec<S> ex, UpdateRowsOfAll const& all) {
  std::map<std::pair<Optimizer::Kind, DataType>, std::vector<UpdatedRows>> groups;
  for (auto const& u : all.tables) {
    GPUPS_ASSERT(u.sums.rows() >= u.ids.size() && u.sums.columns() >= u.dim);
    GPUPS_ASSERT(u.values.stride >= row_stride(u.dim) && (u.values.type == DataType::kFloat || u.keys.stride == 1));
    groups[{u.optimizer.kind, u.values.type}].push_back({u, std::ldexp(u.scale, u.grid_log2)});
  }
  for (auto& [group, tables] : groups) {
    with_number(group.second,
                [&ex, kind = group.first, &of_group = tables]<class T>() { update<T>(ex, kind, std::move(of_group)); });
  }
}

GPUPS_KERNEL(update_rows_of_all, UpdateRowsOfAll)

#ifndef __CUDACC__
void update_rows(Stream& stream, std::span<UpdateRows const> tables) { update_rows_of_all(stream, {tables}); }
#endif

}  // namespace gpups::kernels
