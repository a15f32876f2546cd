// SPDX-License-Identifier: Apache-2.0
// Adds up the gradients that several ranks have sent for the rows of many tables. On a GPU, no thread waits: the number
// of distinct rows of a table stays on the device, where update_rows() reads it, and memory has room for the most that
// there can be. Sums that a rank has itself can be added to in place: those of rows that no other rank has are neither
// read nor written. On a GPU, each other sum is read once and the sum of each row is written once; about 100 bytes more
// per listed row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "kernels/codec/packed_rows.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// Sums of gradients of distinct rows of a table, from one rank. Their form is one of these:
// - `sums` alone: a sum for each row.
// - `sums` and `positions`: sum positions[i] for row i.
// - `sums` and `marked`: the sums of the marked rows, in their order. The sums of the other rows are 0.
// - `packed` and `starts`: a sum for each row, packed.
struct GradientList {
  View<std::uint32_t const> ids;          // (n), row numbers
  MatrixView<std::int64_t const> sums{};  // (n or marked rows, or more with `positions`, dim), stride row_stride(dim)
  View<std::uint32_t const> positions{};  // (n), distinct
  View<std::uint32_t const> marked{};     // (bitmap_words(n))
  PackedRows packed{};                    // (n, dim)
  View<std::uint64_t const> starts{};     // from wait_find_packed_rows()
};

// Merges the lists of one table.
struct MergeGradients {
  std::span<GradientList const> lists;  // on the host; used only during the call
  std::size_t dim;
  Rows<std::uint64_t> mark;  // stride 1: words of rows, 0 for a new row; those of listed rows are overwritten
  std::uint32_t epoch;       // no mark has it in its high half before the call; at least 1
  // Output. The first count[0] elements are the distinct rows, in the order of their first use in the lists, and their
  // sums; the padding of these is set to 0. Rows whose sums are written in place are not among them.
  View<std::uint32_t> ids;        // (>= the sizes of the other lists together)
  MatrixView<std::int64_t> sums;  // (>= the same, dim), stride row_stride(dim)
  View<std::uint32_t> count;      // (1)
  // (1), kNoRow before the call; after it the smallest row number whose sum over all lists is outside int64, if there
  // is one. That sum wraps around.
  View<std::uint32_t> bad_row;
  // The matrix of the sums of lists[0], whose rows get their sums over all lists in place; or empty: none do. REQUIRES:
  // lists[0] has its sums alone, or with positions.
  MatrixView<std::int64_t> in_place{};

  // Returns the number of rows whose sums are written in place.
  std::size_t rows_in_place() const { return in_place.rows() > 0 ? lists[0].ids.size() : 0; }
};
// Queued on `stream`. The lists of all tables together have less than 2^32 rows. REQUIRES: no two elements have the
// same table.
void merge_gradients(Stream& stream, std::span<MergeGradients const> tables);

// target(slots[i]) += sums[i], or sums[positions[i]] if there are positions.
struct MergeSums {
  MatrixView<std::int64_t> into;          // (rows, dim)
  View<std::uint32_t const> slots;        // (k), distinct
  MatrixView<std::int64_t const> sums;    // (>= k, dim), the same stride
  View<std::uint32_t> bad_row;            // (1), kNoRow before: the smallest slots[i] whose sum is outside int64
  View<std::uint32_t const> positions{};  // (k) or empty
  MatrixView<std::int64_t> more{};        // the targets from into.rows() on, the same stride

  GPUPS_FN std::int64_t* target(std::uint32_t slot) const {
    bool const first = slot < into.rows();  // without a branch
    return (first ? into.data() : more.data()) + (slot - (first ? 0 : into.rows())) * (first ? into : more).stride();
  }
};
// Many lists at once. REQUIRES: no two lists have the same row of the same matrix.
void merge_sums(Stream& stream, std::span<MergeSums const> lists);
inline void merge_sums(Stream& stream, MergeSums const& list) { merge_sums(stream, {&list, 1}); }

}  // namespace gpups::kernels
