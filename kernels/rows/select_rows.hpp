// SPDX-License-Identifier: Apache-2.0
// Lists the rows that have a given status. Reads 8 bytes per row, writes 4 bytes per listed row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// The status of a row: it exists, waits for admission, or is free or only reserved (see row_lifecycle.hpp).
enum class RowStatus { kExist, kWait, kFree };

struct SelectRows {
  Rows<std::uint32_t const> lifecycle;  // stride kLifecycleWords
  std::uint32_t first, last;            // the rows that are searched: first .. last - 1
  View<std::uint32_t> ids;              // (>= last - first), output: the rows of this kind, ascending
  RowStatus kind;
};

// Lists the rows. Returns how many there are. Waits for `stream`.
std::size_t wait_select_rows(Stream& stream, SelectRows const& arguments);

}  // namespace gpups::kernels
