// SPDX-License-Identifier: Apache-2.0
// copy_rows() for many lists of rows of different dims, in one launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/rows/copy_rows.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// A list of rows to copy: row from(i) to row to(i) for each i < n for which neither is null.
template <class From, class To>
struct CopiedRows {
  From from;
  To to;
  std::size_t n;
  CopiedRow row;
  bool words;  // rows are copied in words of 16 bytes

  GPUPS_ANY_FN std::size_t words_of(std::size_t floats) const { return words ? floats / 4 : floats; }
};

template <class From, class To>
CopiedRows<From, To> copied_rows(From from, To to, std::size_t n, CopiedRow row) {
  bool const words = row.dim % 4 == 0 && row.stride % 4 == 0 && from.are_words() && to.are_words();
  return {from, to, n, row, words};
}

#ifdef __CUDACC__
template <class Rows>
void copy_row_lists(DeviceExec ex, std::vector<Rows> all) {
  if (all.empty()) return;
  SegmentList const list(ex, std::move(all),
                         [](Rows const& rows) { return copy_threads(rows.n, rows.words_of(rows.row.stride)); });
  each_item(ex, list.segments(), [] GPUPS_FN(Rows const& r, std::size_t thread) {
    std::size_t const words = r.words_of(r.row.stride), from_words = r.words_of(r.row.dim);
    if (r.words) {
      copy_words_of<uint4>(thread, r.n, words, from_words, r.from, r.to);
    } else {
      copy_words_of<std::uint32_t>(thread, r.n, words, from_words, r.from, r.to);
    }
  });
}
#else
template <bool kStream, class Rows>
void copy_row_lists(HostExec ex, Segments<Rows> all) {
  each_item_range(ex, all, rows_at_once(kStream), [](Rows const& r, std::size_t first, std::size_t last) {
    if (kStream && r.to.are_whole_lines()) return copy_range<kStream>(r.row, r.from, r.to, first, last);
    copy_range<false>(r.row, r.from, r.to, first, last);
  });
}
template <class Rows>
void copy_row_lists(HostExec ex, std::vector<Rows> all) {
  if (all.empty()) return;
  std::size_t bytes = 0;
  for (Rows const& r : all) bytes += r.to.are_whole_lines() ? r.n * r.row.stride * sizeof(float) : 0;
  SegmentList const list(ex, std::move(all), [](Rows const& rows) { return rows.n; });
  exceeds_caches(*ex.arena, bytes) ? copy_row_lists<true>(ex, list.segments())
                                   : copy_row_lists<false>(ex, list.segments());
}
#endif

}  // namespace gpups::kernels
