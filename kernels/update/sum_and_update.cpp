// SPDX-License-Identifier: Apache-2.0
#include "kernels/update/sum_and_update.hpp"

#include <algorithm>

#include "kernels/base/assert.hpp"
#include "kernels/base/max_abs.hpp"
#include "kernels/sum/sum_rows_host.hpp"
#include "kernels/update/update_row.hpp"

namespace gpups::kernels {
namespace {

constexpr std::size_t kBufferColumns = 1024;  // 8 KiB of sums
constexpr double kSumMax = 0x1p62;

}  // namespace

bool can_sum_and_update(Device device, std::size_t dim) {
  return device.is_host() && row_stride(dim) <= kBufferColumns;
}

void run(HostExec ex, SumAndUpdate const& arguments) {
  GPUPS_ASSERT(can_sum_and_update(Device::host(), arguments.update.dim));
  auto const& s = arguments.gradients;
  auto const& u = arguments.update;
  if (u.ids.empty()) return;
  double const per_grid = std::ldexp(1.0, -s.grid_log2), unit = std::ldexp(u.scale, u.grid_log2);
  auto const ahead = [&](std::size_t r) GPUPS_INLINED_BODY { prefetch_row(u, u.ids[r]); };
  // From integers. One kind of sums is enough for all rows, since update_row() converts them in the same way.
  auto const update = [&](std::uint32_t r, std::int64_t const* sums, bool fits) {
    if (!fits) atomic_min(u.bad_row.data(), u.ids[r]);
    alignas(64) double converted[kBufferColumns];
    std::copy_n(sums, s.sums.stride(), converted);
    update_row(HostLanes{}, u, u.ids[r], MeanOfDoubles{converted, unit});
  };
  auto const short_row = [&](std::uint32_t r, RowEntries const& entries) {
#ifdef GPUPS_DOWNWARD
    alignas(64) double exact[kBufferColumns];
    if (sum_row(s, entries, ToDoubles{exact})) {
      for (std::size_t j = s.sums.columns(); j < s.sums.stride(); ++j) exact[j] = 0;
      return update_row(HostLanes{}, u, u.ids[r], MeanOfDoubles{exact, u.scale});
    }
#endif
    alignas(64) std::int64_t sums[kBufferColumns];
    bool const fits = sum_any_row(s, per_grid, entries, sums);
    update(r, sums, fits);
  };
  auto const long_row = [&](std::uint32_t r, auto add_pieces) {
    alignas(64) std::int64_t sums[kBufferColumns];
    bool const fits = add_pieces(sums);
    update(r, sums, fits);
  };
  each_row_to_sum(ex, s, per_grid, ahead, short_row, long_row);
}

float run(HostExec ex, MatrixView<float const> const& rows) {
  float most = 0;
  ex.arena->blocks((rows.rows() + kBlockRows - 1) / kBlockRows, [&](std::size_t block) {
    std::size_t const first = block * kBlockRows, count = std::min(kBlockRows, rows.rows() - first);
    float here = 0;
    if (rows.stride() == rows.columns()) {  // as fast as one long row
      here = max_abs(HostLanes{}, rows.row(first), count * rows.columns());
    } else {
      for (std::size_t i = first; i < first + count; ++i) {
        here = std::max(here, max_abs(HostLanes{}, rows.row(i), rows.columns()));
      }
    }
    atomic_max(&most, here);
  });
  return most;
}

GPUPS_HOST_KERNEL(void, sum_and_update, SumAndUpdate)
GPUPS_HOST_KERNEL(float, wait_max_abs, MatrixView<float const>)

double contribution_max(float coefficient_max_abs, float source_max_abs, int grid_log2) {
  double const largest = static_cast<double>(coefficient_max_abs) * static_cast<double>(source_max_abs);
  return std::ldexp(largest, -grid_log2) + 1;  // rounding adds one unit at most
}

bool has_sums_within(std::size_t entries, double contribution_max) {
  return static_cast<double>(entries) * contribution_max <= kSumMax;  // false for NaN
}

}  // namespace gpups::kernels
