// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/merge_gradients.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/rows/selected_rows.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/sum/add_sums.hpp"
#ifdef __CUDACC__
#include "kernels/sum/merge_gradients_device.hpp"
#else
#include "kernels/sum/merge_gradients_host.hpp"
#endif

namespace gpups::kernels {

struct MergeGradientsOfAll {
  std::span<MergeGradients const> tables;
};

inline void check([[maybe_unused]] MergeGradients const& m) {
  [[maybe_unused]] std::size_t rows = 0;
  for ([[maybe_unused]] auto const& list : m.lists) {
    [[maybe_unused]] std::size_t const n = list.ids.size();
    GPUPS_ASSERT(list.packed.rows == 0 ? list.sums.stride() == m.sums.stride() || n == 0
                                       : list.packed.rows == n && list.packed.dim == m.dim);
    GPUPS_ASSERT(list.marked.empty() ? list.packed.rows == n || list.sums.rows() >= n
                                     : list.marked.size() >= bitmap_words(n));
    rows += n;
  }
  GPUPS_ASSERT(m.epoch > 0 && m.ids.size() >= rows && m.sums.rows() >= rows && m.sums.stride() == row_stride(m.dim));
}

template <Space S>
void run(Exec<S> ex, MergeGradientsOfAll const& all) {
  for (auto const& table : all.tables) check(table);
  if (!all.tables.empty()) merge_gradients(ex, all.tables);
}

template <Space S>
void run(Exec<S> ex, MergeSums const& m) {
  add_sums(ex, m);
}

GPUPS_KERNEL(merge_gradients_of_all, MergeGradientsOfAll)
GPUPS_KERNEL(merge_sums, MergeSums)

#ifndef __CUDACC__
void merge_gradients(Stream& stream, std::span<MergeGradients const> tables) {
  merge_gradients_of_all(stream, {tables});
}
#endif

}  // namespace gpups::kernels
