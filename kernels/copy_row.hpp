// SPDX-License-Identifier: Apache-2.0
// How rows of floats are moved at the speed of memory: which rows, by what kind of stores, and the loop over them.
//
// On the host the source is prefetched some rows ahead. Results larger than the caches are written around them: an
// ordinary store reads the line that it is about to overwrite, which is half as much traffic again. On a GPU each
// thread moves four words of 16 bytes, and asks for all of them before it writes the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpups/array.hpp"
#include "kernels/assert.hpp"
#include "kernels/launch.hpp"
#include "kernels/row_storage.hpp"
#include "kernels/streaming.hpp"

namespace gpups::kernels {

// Whether rows of so many bytes, the first of them here, can be moved by words of 16 bytes.
inline bool are_words_of_16(void const* first, std::size_t row_bytes) {
  return reinterpret_cast<std::uintptr_t>(first) % 16 == 0 && row_bytes % 16 == 0;
}

// Row i of a matrix.
template <class T>
struct MatrixRows {
  static constexpr bool kScattered = false;
  MatrixView<T> rows;

  GPUPS_ANY_FN T* operator()(std::size_t i) const { return rows.row(i); }
  bool are_whole_lines() const { return are_lines(rows.data(), rows.stride() * sizeof(T)); }
  bool are_words() const { return are_words_of_16(rows.data(), rows.stride() * sizeof(T)); }
};

// Row positions[i] of a matrix.
template <class T>
struct MatrixRowsAt {
  static constexpr bool kScattered = true;
  MatrixView<T> rows;
  View<std::uint32_t const> positions;

  GPUPS_ANY_FN T* operator()(std::size_t i) const { return rows.row(positions[i]); }
  bool are_whole_lines() const { return are_lines(rows.data(), rows.stride() * sizeof(T)); }
  bool are_words() const { return are_words_of_16(rows.data(), rows.stride() * sizeof(T)); }
};

// Row ids[i] of a table; null where that is kNoRow.
template <class T>
struct TableRows {
  static constexpr bool kScattered = true;
  Rows<T> rows;
  View<std::uint32_t const> ids;

  GPUPS_ANY_FN T* operator()(std::size_t i) const { return ids[i] == kNoRow ? nullptr : rows.row(ids[i]); }
  // Chunks begin with a line.
  bool are_whole_lines() const { return are_lines(nullptr, rows.stride * sizeof(T)); }
  bool are_words() const { return are_words_of_16(nullptr, rows.stride * sizeof(T)); }
};

// Floats of a row: how many are copied, and up to where zeros follow.
struct CopiedRow {
  std::size_t dim, stride;
};

#ifdef __CUDACC__
inline constexpr std::size_t kWordsAtOnce = 4;

// Rows of whole words of 16 bytes: word w of all is word w % words of row w / words.
template <class From, class To>
void copy_words(DeviceExec ex, std::size_t n, std::size_t words, From from, To to) {
  std::size_t const total = n * words, step = (total + kWordsAtOnce - 1) / kWordsAtOnce;
  auto const row_words = static_cast<std::uint32_t>(words);
  each(ex, step, [=] GPUPS_FN(std::size_t first) {
    uint4 value[kWordsAtOnce];
    uint4* place[kWordsAtOnce];
#pragma unroll
    for (std::size_t k = 0; k < kWordsAtOnce; ++k) {
      std::size_t const w = first + k * step;
      place[k] = nullptr;
      if (w >= total) continue;
      // A division of 64 bits takes as long as the rest.
      std::size_t const row = total >> 32 == 0 ? static_cast<std::uint32_t>(w) / row_words : w / row_words;
      auto const* const source = reinterpret_cast<uint4 const*>(from(row));
      auto* const target = reinterpret_cast<uint4*>(to(row));
      if (source == nullptr || target == nullptr) continue;
      value[k] = source[w - row * words];
      place[k] = target + (w - row * words);
    }
#pragma unroll
    for (std::size_t k = 0; k < kWordsAtOnce; ++k) {
      if (place[k] != nullptr) *place[k] = value[k];
    }
  });
}

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

#else
template <bool kStream>
inline void copy_row(float* to, float const* from, CopiedRow row) {
  std::size_t j = 0;
  for (; j + kLineFloats <= row.dim; j += kLineFloats) {
    if constexpr (kStream) {
      stream_line(to + j, from + j);
    } else {
      std::memcpy(to + j, from + j, kLineFloats * sizeof(float));
    }
  }
  if (j == row.stride) return;
  float last[kLineFloats] = {};
  std::memcpy(last, from + j, (row.dim - j) * sizeof(float));
  if (kStream && row.stride - j == kLineFloats) return stream_line(to + j, last);
  std::memcpy(to + j, last, (row.stride - j) * sizeof(float));
}

// Rows of up to this many bytes altogether are under way ahead of their copy.
inline constexpr std::size_t kBytesAhead = 8192;

template <bool kStream, class From, class To>
void copy_rows(HostExec ex, std::size_t n, CopiedRow row, From from, To to) {
  std::size_t const bytes = row.stride * sizeof(float), fit = kBytesAhead / bytes;
  std::size_t const ahead = fit < 4 ? 4 : fit > 64 ? 64 : fit;
  // At the end of a stream a thread waits until memory has all of it.
  constexpr std::size_t kRows = kStream ? 16 * kBlockRows : kBlockRows;
  ex.arena->blocks((n + kRows - 1) / kRows, [=](std::size_t block) {
    std::size_t const first = block * kRows, last = first + kRows < n ? first + kRows : n;
    // Copies of their own, which no store of a vector can change: what is captured would be read again after each.
    From const from_row = from;
    To const to_row = to;
    CopiedRow const copied = row;
    std::size_t const rows = n, distance = ahead, row_bytes = bytes;
    for (std::size_t i = first; i < last; ++i) {
      if (i + distance < rows) {
        constexpr Ahead kAhead = kStream ? Ahead::kToL2 : Ahead::kToL1;
        if constexpr (From::kScattered) prefetch_row<kAhead>(from_row(i + distance), row_bytes);
        if constexpr (To::kScattered && !kStream) prefetch_row<Ahead::kToWrite>(to_row(i + distance), row_bytes);
      }
      float const* const source = from_row(i);
      float* const target = to_row(i);
      if (source != nullptr && target != nullptr) copy_row<kStream>(target, source, copied);
    }
    if (kStream) end_streaming();
  });
}

// to(i) = from(i) for i < n where neither is null, and zeros behind the dim floats. REQUIRES: rows to(i) are distinct.
template <class From, class To>
void copy_rows(HostExec ex, std::size_t n, CopiedRow row, From from, To to) {
  GPUPS_ASSERT(row.stride >= row.dim && row.stride - row.dim < kLineFloats);
  bool const stream = to.are_whole_lines() && outgrows_caches(*ex.arena, n * row.stride * sizeof(float));
  stream ? copy_rows<true>(ex, n, row, from, to) : copy_rows<false>(ex, n, row, from, to);
}
#endif

}  // namespace gpups::kernels
