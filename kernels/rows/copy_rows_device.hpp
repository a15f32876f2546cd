// SPDX-License-Identifier: Apache-2.0
// Copies rows on a GPU. Each thread copies four words of 16 bytes, and loads all four before it stores the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/rows/copied_rows.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kWordsAtOnce = 4;

// Returns the number of threads that copy n rows of `words` words.
inline std::size_t copy_threads(std::size_t n, std::size_t words) {
  return (n * words + kWordsAtOnce - 1) / kWordsAtOnce;
}

// Copies the words of one of copy_threads() threads. Word w of all rows together is word w % words of row w / words.
// Words of a row from from_words on are zero.
template <class Word, class From, class To>
GPUPS_FN inline void copy_words_of(std::size_t thread, std::size_t n, std::size_t words, std::size_t from_words,
                                   From const& from, To const& to) {
  std::size_t const total = n * words, step = (total + kWordsAtOnce - 1) / kWordsAtOnce;
  auto const row_words = static_cast<std::uint32_t>(words);
  Word value[kWordsAtOnce];
  Word* place[kWordsAtOnce];
#pragma unroll
  for (std::size_t k = 0; k < kWordsAtOnce; ++k) {
    std::size_t const w = thread + k * step;
    place[k] = nullptr;
    if (w >= total) continue;
    // A 64-bit division would take as long as the rest of this body, so it is avoided if 32 bits suffice.
    std::size_t const row = total >> 32 == 0 ? static_cast<std::uint32_t>(w) / row_words : w / row_words;
    auto const* const source = reinterpret_cast<Word const*>(from(row));
    auto* const target = reinterpret_cast<Word*>(to(row));
    if (source == nullptr || target == nullptr) continue;
    std::size_t const word = w - row * words;
    value[k] = word < from_words ? source[word] : Word{};
    place[k] = target + word;
  }
#pragma unroll
  for (std::size_t k = 0; k < kWordsAtOnce; ++k) {
    if (place[k] != nullptr) *place[k] = value[k];
  }
}

// Copies rows that consist of `words` words of 16 bytes.
template <class From, class To>
void copy_words(DeviceExec ex, std::size_t n, std::size_t words, From from, To to) {
  each(ex, copy_threads(n, words),
       [=] GPUPS_FN(std::size_t thread) { copy_words_of<uint4>(thread, n, words, words, from, to); });
}

// Copies row from(i) to row to(i) for each i < n for which neither is null, and writes zeros behind the first dim
// floats. REQUIRES: the rows to(i) are distinct.
template <class From, class To>
void copy_rows(DeviceExec ex, std::size_t n, CopiedRow row, From from, To to) {
  bool const words = row.dim == row.stride && row.stride % 4 == 0 && from.are_words() && to.are_words();
  if (words) return copy_words(ex, n, row.stride / 4, from, to);
  each_row(ex, n, [=] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const source = from(i);
    float* const target = to(i);
    if (source == nullptr || target == nullptr) return;
    lanes.each(row.stride, [=](std::size_t j) { target[j] = j < row.dim ? source[j] : 0; });
  });
}

// The same for many lists of rows of different dims, in one launch.
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

}  // namespace gpups::kernels
