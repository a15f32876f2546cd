// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/merge_gradients.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/rows/selected_rows.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"
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
  GPUPS_ASSERT(m.in_place.rows() == 0 || (m.lists[0].sums.data() == m.in_place.data() && m.lists[0].marked.empty() &&
                                          m.in_place.stride() == m.sums.stride()));
  rows -= m.rows_in_place();
  GPUPS_ASSERT(m.epoch > 0 && m.ids.size() >= rows && m.sums.rows() >= rows && m.sums.stride() == row_stride(m.dim));
}

template <Space S>
void run(Exec<S> ex, MergeGradientsOfAll const& all) {
  for (auto const& table : all.tables) check(table);
  if (!all.tables.empty()) merge_gradients(ex, all.tables);
}

struct MergeSumsOfAll {
  std::span<MergeSums const> lists;
};

template <Space S>
void run(Exec<S> ex, MergeSumsOfAll const& all) {
  for (auto const& list : all.lists) check(list);
  SegmentList const lists(ex, std::vector<MergeSums>(all.lists.begin(), all.lists.end()),
                          [](MergeSums const& list) { return list.slots.size(); });
  each_row_item(ex, lists.segments(), [] GPUPS_FN(MergeSums const& list, std::size_t i, NativeLanes lanes) {
    add_row_of_sums(list, i, lanes);
  });
}

GPUPS_KERNEL(merge_gradients_of_all, MergeGradientsOfAll)
GPUPS_KERNEL(merge_sums_of_all, MergeSumsOfAll)

#ifndef __CUDACC__
void merge_gradients(Stream& stream, std::span<MergeGradients const> tables) {
  merge_gradients_of_all(stream, {tables});
}
void merge_sums(Stream& stream, std::span<MergeSums const> lists) { merge_sums_of_all(stream, {lists}); }
#endif

}  // namespace gpups::kernels
