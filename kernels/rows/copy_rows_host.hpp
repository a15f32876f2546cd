// SPDX-License-Identifier: Apache-2.0
// Copies rows on the host. Scattered rows are prefetched some rows before they are copied. Results that are larger than
// the caches are written around them: an ordinary store first reads the line that it overwrites, which adds half of the
// traffic again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/nontemporal.hpp"
#include "kernels/rows/copied_rows.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// The addresses of rows. The address of a scattered row is computed once, for its prefetch, and kept until the row is
// copied. Addresses of contiguous rows are not kept.
template <class Rows, bool kScattered = Rows::kScattered>
class RowAddresses {
 public:
  explicit RowAddresses(Rows rows) : rows_(rows) {}
  auto* look_up(std::size_t i) { return row_[i % kKept] = rows_(i); }
  // REQUIRES: row i is one of the last kKept rows that look_up() was called for.
  auto* operator[](std::size_t i) const { return row_[i % kKept]; }

 private:
  static constexpr std::size_t kKept = 128;
  Rows rows_;
  decltype(rows_(0)) row_[kKept];
};
template <class Rows>
class RowAddresses<Rows, false> {
 public:
  explicit RowAddresses(Rows rows) : rows_(rows) {}
  auto* operator[](std::size_t i) const { return rows_(i); }

 private:
  Rows rows_;
};

// Copies one row. kLines: the number of whole cache lines of the row, so that the copy takes few instructions and a
// core has more rows in flight; or 0, for rows of any size.
template <bool kStream, std::size_t kLines>
inline void copy_row(float* to, float const* from, CopiedRow row) {
  std::size_t const whole = kLines != 0 ? kLines * kLineFloats : row.dim / kLineFloats * kLineFloats;
  for (std::size_t j = 0; j < whole; j += kLineFloats) {
    if constexpr (kStream) {
      store_line_nontemporal(to + j, from + j);
    } else {
      std::memcpy(to + j, from + j, kLineFloats * sizeof(float));
    }
  }
  if (kLines != 0 || whole == row.stride) return;
  float last[kLineFloats] = {};
  std::memcpy(last, from + whole, (row.dim - whole) * sizeof(float));
  if (kStream && row.stride - whole == kLineFloats) return store_line_nontemporal(to + whole, last);
  std::memcpy(to + whole, last, (row.stride - whole) * sizeof(float));
}

// The distances, in rows, from the prefetch of a row to its copy: for its first line, and for its other lines. The
// first prefetch finds the page of the row; without it, each line would wait for the page.
struct RowsAhead {
  std::size_t first_line, rest;

  static RowsAhead of(std::size_t row_bytes) {
    std::size_t const rows = std::clamp<std::size_t>(16384 / row_bytes, 4, 64);
    return {rows, rows / 2};
  }
};

// Copies a range of rows, with prefetches.
template <bool kStream, std::size_t kLines, class From, class To>
class RowCopy {
 public:
  RowCopy(From from, To to, CopiedRow row) : from_(from), to_(to), row_(row) {}

  // Copies rows first .. last - 1.
  void run(std::size_t first, std::size_t last) {
    CopiedRow const row = row_;
    RowsAhead const ahead = RowsAhead::of(row.stride * sizeof(float));
    for (std::size_t i = first; i < std::min(first + ahead.first_line, last); ++i) prefetch_first_line(i);
    for (std::size_t i = first; i < std::min(first + ahead.rest, last); ++i) prefetch_rest(i);
    for (std::size_t i = first; i < last; ++i) {
      if (i + ahead.first_line < last) prefetch_first_line(i + ahead.first_line);
      if (i + ahead.rest < last) prefetch_rest(i + ahead.rest);
      float const* const source = from_[i];
      float* const target = to_[i];
      if (source != nullptr && target != nullptr) copy_row<kStream, kLines>(target, source, row);
    }
    if (kStream) nontemporal_fence();
  }

 private:
  // Prefetch into the second-level cache, which can have more lines in flight than the first-level cache. Target rows
  // are prefetched too, unless they are written around the caches.
  [[gnu::always_inline]] void prefetch_first_line(std::size_t i) {
    if constexpr (From::kScattered) prefetch_row<PrefetchTarget::kToL2>(from_.look_up(i), 1);
    if constexpr (To::kScattered) {
      auto* const row = to_.look_up(i);
      if (!kStream) prefetch_row<PrefetchTarget::kToL2>(row, 1);
    }
  }
  [[gnu::always_inline]] void prefetch_rest(std::size_t i) const {
    std::size_t const bytes = kLines != 0 ? kLines * kLineBytes : row_.stride * sizeof(float);
    if (bytes <= kLineBytes) return;
    if constexpr (From::kScattered) prefetch_row<PrefetchTarget::kToL2>(from_[i] + kLineFloats, bytes - kLineBytes);
    if constexpr (To::kScattered && !kStream)
      prefetch_row<PrefetchTarget::kToL2>(to_[i] + kLineFloats, bytes - kLineBytes);
  }

  RowAddresses<From> from_;
  RowAddresses<To> to_;
  CopiedRow row_;
};

// With nontemporal stores, a thread waits at the end of each block until all its stores are in memory, so blocks are
// larger.
constexpr std::size_t rows_at_once(bool stream) { return (stream ? 16 : 4) * kBlockRows; }

// Copies rows first .. last - 1.
template <bool kStream, class From, class To>
void copy_range(CopiedRow row, From from, To to, std::size_t first, std::size_t last) {
  bool const lines = row.dim == row.stride && row.stride % kLineFloats == 0;
  switch (lines ? row.stride / kLineFloats : 0) {
    case 1:
      return RowCopy<kStream, 1, From, To>(from, to, row).run(first, last);
    case 2:
      return RowCopy<kStream, 2, From, To>(from, to, row).run(first, last);
    case 4:
      return RowCopy<kStream, 4, From, To>(from, to, row).run(first, last);
    case 8:
      return RowCopy<kStream, 8, From, To>(from, to, row).run(first, last);
    default:
      return RowCopy<kStream, 0, From, To>(from, to, row).run(first, last);
  }
}

template <bool kStream, class From, class To>
void copy_rows(HostExec ex, std::size_t n, CopiedRow row, From from, To to) {
  constexpr std::size_t kRows = rows_at_once(kStream);
  ex.arena->blocks((n + kRows - 1) / kRows, [=](std::size_t block) {
    copy_range<kStream>(row, from, to, block * kRows, std::min((block + 1) * kRows, n));
  });
}

// Copies row from(i) to row to(i) for each i < n for which neither is null, and writes zeros behind the first dim
// floats. REQUIRES: the rows to(i) are distinct.
template <class From, class To>
void copy_rows(HostExec ex, std::size_t n, CopiedRow row, From from, To to) {
  GPUPS_ASSERT(row.stride >= row.dim && row.stride - row.dim < kLineFloats);
  bool const stream = to.are_whole_lines() && exceeds_caches(*ex.arena, n * row.stride * sizeof(float));
  stream ? copy_rows<true>(ex, n, row, from, to) : copy_rows<false>(ex, n, row, from, to);
}

template <bool kStream, class Rows>
void copy_row_lists(HostExec ex, Segments<Rows> all) {
  each_item_range(ex, all, rows_at_once(kStream), [](Rows const& r, std::size_t first, std::size_t last) {
    if (kStream && r.to.are_whole_lines()) return copy_range<kStream>(r.row, r.from, r.to, first, last);
    copy_range<false>(r.row, r.from, r.to, first, last);
  });
}
// The same for many lists of rows of different dims.
template <class Rows>
void copy_row_lists(HostExec ex, std::vector<Rows> all) {
  if (all.empty()) return;
  std::size_t bytes = 0;
  for (Rows const& r : all) bytes += r.to.are_whole_lines() ? r.n * r.row.stride * sizeof(float) : 0;
  SegmentList const list(ex, std::move(all), [](Rows const& rows) { return rows.n; });
  exceeds_caches(*ex.arena, bytes) ? copy_row_lists<true>(ex, list.segments())
                                   : copy_row_lists<false>(ex, list.segments());
}

}  // namespace gpups::kernels
