// SPDX-License-Identifier: Apache-2.0
// Lists rows by what has become of them. Reads 8 bytes per number, writes 4 per row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

enum class RowStatus { kExist, kWait, kFree };

struct SelectRows {
  Rows<std::uint32_t const> lifecycle;  // stride kLifecycleWords
  std::uint32_t first, last;            // of the numbers first .. last - 1,
  View<std::uint32_t> ids;              // (>= last - first) those of this kind, ascending
  RowStatus kind;
};

// Returns how many there are. Waits for `stream`.
std::size_t wait_select_rows(Stream& stream, SelectRows const& arguments);

}  // namespace gpups::kernels
