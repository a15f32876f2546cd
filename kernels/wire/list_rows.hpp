// SPDX-License-Identifier: Apache-2.0
// Which rows of a list are sent: a byte for each where that is decided, a bit for each on the wire, and their numbers
// where they are handled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// rows = the i with a flag that is not 0, ascending, and taken = from[i] of these. Returns how many. Waits for
// `stream`.
struct ListFlagged {
  View<std::uint8_t const> flags;  // (n)
  View<std::uint32_t> rows;        // (n)
  View<std::uint32_t const> from;  // (n)
  View<std::uint32_t> taken;       // (n)
};
std::size_t wait_list_flagged(Stream& stream, ListFlagged const& arguments);

// taken = from[i], or i where there is no `from`, of the i < n whose bit i % 32 of bitmap[i / 32] is set, in order, as
// indices_to_bitmap() sets them. Returns how many. Waits for `stream`.
struct ListMarked {
  View<std::uint32_t const> bitmap;  // ((n + 31) / 32)
  std::size_t n;
  View<std::uint32_t const> from;  // (n), or empty
  View<std::uint32_t> taken;       // (n)
};
std::size_t wait_list_marked(Stream& stream, ListMarked const& arguments);

// Words of such a bitmap.
constexpr std::size_t bitmap_words(std::size_t n) { return (n + 31) / 32; }

}  // namespace gpups::kernels
