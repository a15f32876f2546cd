// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/extract_columns.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
GPUPS_FN inline std::size_t bits_set(std::uint32_t word) { return static_cast<std::size_t>(__popc(word)); }
#else
inline std::size_t bits_set(std::uint32_t word) { return static_cast<std::size_t>(__builtin_popcount(word)); }
#endif

template <Space S>
void run(Exec<S> ex, UnitsToFloats const& t) {
  GPUPS_ASSERT(t.to.rows() >= t.from.rows() && t.to.columns() == t.from.columns());
  each_row(ex, t.from.rows(), [t] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const from = t.from.row(i);
    float* const to = t.to.row(i);
    lanes.each(t.from.columns(), [=](std::size_t j) { to[j] = static_cast<float>(from[j]); });
  });
}

template <Space S>
void run(Exec<S> ex, ExtractColumns const& t) {
  std::size_t const n = t.rows.rows(), words = bitmap_words(t.rows.columns());
  GPUPS_ASSERT(t.columns.size() >= n * t.k && t.kept.rows() >= n && t.kept.columns() == t.k);
  GPUPS_ASSERT(t.bitmaps.size() >= n * words);
  each_row(ex, n, [t, words] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::uint32_t const* const columns = t.columns.data() + i * t.k;
    std::int64_t* const row = t.rows.row(i);
    std::int64_t* const kept = t.kept.row(i);
    std::uint32_t* const bitmap = t.bitmaps.data() + i * words;
    lanes.each(words, [=](std::size_t w) { bitmap[w] = 0; });
    lanes.each(t.k, [=](std::size_t r) {
      kept[r] = row[columns[r]];
      row[columns[r]] = 0;
    });
    // There are few columns, so one lane does it.
    if (!lanes.first()) return;
    for (std::size_t r = 0; r < t.k; ++r) bitmap[columns[r] / 32] |= 1U << (columns[r] % 32);
  });
}

template <Space S>
void run(Exec<S> ex, AddColumns const& a) {
  std::size_t const n = a.kept.rows(), words = bitmap_words(a.rows.columns());
  GPUPS_ASSERT(a.bitmaps.size() >= n * words && (a.slots.empty() ? a.rows.rows() >= n : a.slots.size() >= n));
  each_row(ex, n, [a, words] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::uint32_t const* const bitmap = a.bitmaps.data() + i * words;
    std::int64_t const* const kept = a.kept.row(i);
    std::int64_t* const row = a.rows.row(a.slots.empty() ? i : a.slots[i]);
    lanes.each(a.rows.columns(), [=](std::size_t j) {
      std::uint32_t const word = bitmap[j / 32], below = word & ((1U << (j % 32)) - 1);
      if ((word >> (j % 32) & 1U) == 0) return;
      std::size_t rank = bits_set(below);
      for (std::size_t w = 0; w < j / 32; ++w) rank += bits_set(bitmap[w]);
      if (rank >= a.kept.columns()) return;
      auto const sum = static_cast<std::uint64_t>(row[j]) + static_cast<std::uint64_t>(kept[rank]);
      row[j] = static_cast<std::int64_t>(sum);
    });
  });
}

GPUPS_KERNEL(units_to_floats, UnitsToFloats)
GPUPS_KERNEL(extract_columns, ExtractColumns)
GPUPS_KERNEL(add_columns, AddColumns)

}  // namespace gpups::kernels
