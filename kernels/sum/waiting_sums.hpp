// SPDX-License-Identifier: Apache-2.0
// Sums of gradients that wait on this rank for a batch that sends them, by slot; for many tables at once.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "kernels/codec/accumulate_residual.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// The sums of a table, (slots, dim), and their marks; a slot that has none has zeros.
struct WaitingRows {
  Rows<std::int64_t> sums;
  Rows<std::uint32_t> marks;  // stride kResidualMarks
};

// The rows of a step whose gradients may wait, or may have waited: leased rows by part, and announced rows by table.
// Items are the leased rows, and then the announced ones.
struct ListWaiting {
  struct ItemsOfList {
    std::uint32_t size = 0;
    std::uint32_t number = 0;  // of the part, or of the table
    bool announced = false;
  };
  std::span<ItemsOfList const> lists;  // in the order of the items
  std::uint32_t parts = 0;
  View<std::uint32_t const> slots;  // (items), or kNoRow
  View<std::uint32_t const> uses;   // of leased rows: see replicas.hpp
  View<std::uint32_t> list_of;      // (items), for partition_items()

  // Leased rows that this rank owns; those with slots; those without; and announced rows with slots.
  static constexpr std::uint32_t owned(std::uint32_t part) { return part; }
  static constexpr std::uint32_t known(std::uint32_t parts, std::uint32_t part) { return parts + part; }
  static constexpr std::uint32_t fresh(std::uint32_t parts, std::uint32_t part) { return 2 * parts + part; }
  static constexpr std::uint32_t taken(std::uint32_t parts, std::uint32_t table) { return 3 * parts + table; }
  static constexpr std::uint32_t count(std::uint32_t parts, std::uint32_t tables) { return 3 * parts + tables; }
};
void list_waiting(Stream& stream, ListWaiting const& arguments);

// into[i] += the sum in slots[i].
struct MergeWaiting {
  WaitingRows from;
  View<std::uint32_t const> slots;  // (n), distinct, or kNoRow
  MatrixView<std::int64_t> into;    // (n, dim)
  View<std::uint32_t> bad_row;      // (1), kNoRow before: the smallest i whose sum is outside int64
};
void merge_waiting(Stream& stream, std::span<MergeWaiting const> lists);

// Adds row rows[items[i]] of the sums to slots[i], or to slots[items[i]].
struct AddWaiting {
  WaitingRows to;
  MatrixView<std::int64_t const> sums;  // (rows, dim)
  View<std::uint32_t const> rows;       // by item
  View<std::uint32_t const> items;      // (n)
  View<std::uint32_t const> slots;      // (n), distinct, or by item
  bool slots_by_item = false;
  View<std::uint32_t> bad_item;  // (1), kNoRow before: the smallest item whose sum exceeds 2^62
};
// now: the step, above 0. REQUIRES: no two lists have the same slot.
void add_waiting(Stream& stream, std::span<AddWaiting const> lists, std::uint32_t now);

// Clears slots[i], or slots[items[i] - first_item].
struct ClearWaiting {
  WaitingRows from;
  View<std::uint32_t const> slots;    // distinct, or kNoRow
  View<std::uint32_t const> items{};  // (n), or empty: all slots
  std::uint32_t first_item = 0;
  View<std::uint32_t> cleared{};  // (n), or empty: receives the slots
};
void clear_waiting(Stream& stream, std::span<ClearWaiting const> lists);

}  // namespace gpups::kernels
