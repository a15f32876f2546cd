// SPDX-License-Identifier: Apache-2.0
// Residuals of a row filter: rows of sums that wait until they are worth sending. The residual of a row grows with each
// step that uses the row. It is sent when its largest magnitude reaches a bound, or when it has waited too long. Sums
// are integers, so nothing is lost or rounded. Reads 16 and writes 8 bytes per element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// The marks of a slot. Steps are numbers above 0.
enum ResidualMark : std::uint32_t {
  kOldest,   // the first step of which something waits; 0: nothing waits
  kLastUse,  // the last step that used the row; 0: the slot is free
};
inline constexpr std::size_t kResidualMarks = 2;

// Adds row order[i] of the sums to the residual in slot slots[i]. Row i is to be sent if the largest magnitude of the
// new residual is at least the bound, or if something has waited in it for `age` steps.
struct AccumulateResidual {
  MatrixView<std::int64_t const> sums;  // (rows, dim), padding is zero
  View<std::uint32_t const> order;      // (n)
  View<std::uint32_t const> slots;      // (n), distinct
  Rows<std::int64_t> residual;          // same stride as the sums
  Rows<std::uint32_t> marks;            // stride kResidualMarks; rows that are to be sent get kOldest = 0
  std::uint32_t now;                    // this step
  std::uint32_t age;                    // 0: all rows are sent
  float bound;                          // in units of the sums
  View<float> max_magnitude;            // (n), of the new residual, rounded up by at most a factor of 1 + 2^-22
  View<std::uint8_t> send;              // (n), 1 or 0
  // Rows that are to be sent keep kOldest, since part of them may remain; then no row is sent because of its age alone.
  bool sent_stay_marked;
  // (1), kNoRow before the call. The call sets it to the smallest i whose residual exceeds 2^62; that residual is
  // undefined.
  View<std::uint32_t> bad_row;
};
void accumulate_residual(Stream& stream, AccumulateResidual const& arguments);

// Subtracts row order[i] of the sums from the residual in slot slots[i], as the inverse of AccumulateResidual.
struct SubtractResidual {
  MatrixView<std::int64_t const> sums;  // (rows, dim), padding is zero
  View<std::uint32_t const> order;      // (n)
  View<std::uint32_t const> slots;      // (n), distinct
  Rows<std::int64_t> residual;          // same stride as the sums
};
void subtract_residual(Stream& stream, SubtractResidual const& arguments);

// GatherResidual copies the residual in slot slots[i] to out.row(i); ScatterResidual copies from.row(i) to the slot.
// Both copy the padding too.
struct GatherResidual {
  Rows<std::int64_t const> residual;
  View<std::uint32_t const> slots;  // (n)
  MatrixView<std::int64_t> out;     // (>= n, dim), same stride as the residual
};
void gather_residual(Stream& stream, GatherResidual const& arguments);
struct ScatterResidual {
  MatrixView<std::int64_t const> from;  // (>= n, dim)
  View<std::uint32_t const> slots;      // (n), distinct
  Rows<std::int64_t> residual;
};
void scatter_residual(Stream& stream, ScatterResidual const& arguments);

// Sets flags[i] to 1 if row i has an element other than 0, else to 0.
struct FlagNonzero {
  MatrixView<std::int64_t const> rows;  // (n, dim)
  View<std::uint8_t> flags;             // (n)
};
void flag_nonzero(Stream& stream, FlagNonzero const& arguments);

// Sets the marks of slots.
struct MarkResidual {
  Rows<std::uint32_t> marks;
  View<std::uint32_t const> slots;   // (n), distinct
  View<std::uint32_t const> oldest;  // (n), or empty: 0
  std::uint32_t last_use;            // or kKeepLastUse, which leaves it unchanged
};
inline constexpr std::uint32_t kKeepLastUse = 0xFFFFFFFF;
void mark_residual(Stream& stream, MarkResidual const& arguments);

// Lists the slots whose mark is at least `age` steps before `now`, in ascending order. Returns their number. Blocks
// until `stream` is done.
struct ListAged {
  Rows<std::uint32_t const> marks;
  ResidualMark mark;
  std::size_t end;  // the number of slots
  std::uint32_t now, age;
  View<std::uint32_t> slots;  // (end)
};
std::size_t wait_list_aged(Stream& stream, ListAged const& arguments);

}  // namespace gpups::kernels
