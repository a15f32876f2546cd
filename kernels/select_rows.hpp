// SPDX-License-Identifier: Apache-2.0
// Lists the rows that exist. Reads 4 bytes per number, writes 4 per row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

struct SelectRows {
  Rows<std::uint32_t const> life;  // stride 1
  std::uint32_t first, last;       // of the numbers first .. last - 1,
  View<std::uint32_t> ids;         // (>= last - first) those whose life is not 0, ascending
};

// Returns how many there are. Waits for `stream`.
std::size_t wait_select_rows(Stream& stream, SelectRows const& arguments);

}  // namespace gpups::kernels
