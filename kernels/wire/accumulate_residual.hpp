// SPDX-License-Identifier: Apache-2.0
// Rows of sums that wait until they are worth sending: what is held back of a row grows with each step that names it,
// and goes when its largest magnitude reaches a bound, or when it has waited too long. Sums are integers, so nothing is
// lost or rounded. Reads 16 and writes 8 bytes per element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

// The marks of a slot: steps as numbers above 0.
enum ResidualMark : std::uint32_t {
  kOldest,   // the first step of which something waits to be sent; 0: nothing does
  kLastUse,  // the last step that named the row; 0: the slot is free
};
inline constexpr std::size_t kResidualMarks = 2;

// What is held back in slot slots[i] grows by row order[i] of the sums. Row i is to be sent if then its largest
// magnitude is at least the bound, or if something has waited there for `age` steps.
struct AccumulateResidual {
  MatrixView<std::int64_t const> sums;  // (rows, dim), padding is zero
  View<std::uint32_t const> order;      // (n)
  View<std::uint32_t const> slots;      // (n), distinct
  Rows<std::int64_t> residual;          // stride that of the sums
  Rows<std::uint32_t> marks;            // stride kResidualMarks; nothing waits in the slots of rows that are to be sent
  std::uint32_t now;                    // of this step
  std::uint32_t age;                    // 0: all rows are sent
  float bound;                          // in units of the sums
  View<float> max_magnitude;            // (n), magnitude after, rounded up by at most 2^-22 of itself
  View<std::uint8_t> send;              // (n), 1 or 0
  // Rows that are sent wait as before, since something of them may stay; then none is sent for its age alone.
  bool sent_stay_marked;
  View<std::uint32_t> bad_row;  // (1), kNoRow before the call; after it the smallest i whose slot would hold more
                                // than 2^62, if there is any: what it holds is undefined
};
void accumulate_residual(Stream& stream, AccumulateResidual const& arguments);

// What is held back in slot slots[i] gets row order[i] of the sums less, which it had been given.
struct SubtractResidual {
  MatrixView<std::int64_t const> sums;  // (rows, dim), padding is zero
  View<std::uint32_t const> order;      // (n)
  View<std::uint32_t const> slots;      // (n), distinct
  Rows<std::int64_t> residual;          // stride that of the sums
};
void subtract_residual(Stream& stream, SubtractResidual const& arguments);

// out.row(i) = what slot slots[i] holds, and the other way round; padding included.
struct GatherResidual {
  Rows<std::int64_t const> residual;
  View<std::uint32_t const> slots;  // (n)
  MatrixView<std::int64_t> out;     // (>= n, dim), the same stride
};
void gather_residual(Stream& stream, GatherResidual const& arguments);
struct ScatterResidual {
  MatrixView<std::int64_t const> from;  // (>= n, dim)
  View<std::uint32_t const> slots;      // (n), distinct
  Rows<std::int64_t> residual;
};
void scatter_residual(Stream& stream, ScatterResidual const& arguments);

// flags[i] = 1 where row i has a number other than 0, else 0.
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
  std::uint32_t last_use;            // or kKeepLastUse
};
inline constexpr std::uint32_t kKeepLastUse = 0xFFFFFFFF;
void mark_residual(Stream& stream, MarkResidual const& arguments);

// Lists the slots with a mark at least `age` steps before `now`, ascending. Returns how many. Waits for `stream`.
struct ListAged {
  Rows<std::uint32_t const> marks;
  ResidualMark mark;
  std::size_t end;  // of slots
  std::uint32_t now, age;
  View<std::uint32_t> slots;  // (end)
};
std::size_t wait_list_aged(Stream& stream, ListAged const& arguments);

}  // namespace gpups::kernels
