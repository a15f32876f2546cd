// SPDX-License-Identifier: Apache-2.0
// The life of a row: 0 while it is only reserved, else 1 + the number of its updates.
#pragma once

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

// found[i] = 1 where row ids[i] exists; ids of rows that do not become kNoRow.
struct RowsExist {
  Rows<std::uint32_t const> life;
  View<std::uint32_t> ids;   // (n), may hold kNoRow
  View<std::uint8_t> found;  // (n), or empty
};
void rows_exist(Stream& stream, RowsExist const& arguments);

// Rows that were only reserved begin to exist, with no update.
struct BeginRows {
  Rows<std::uint32_t> life;
  View<std::uint32_t const> ids;  // (n), distinct
};
void begin_rows(Stream& stream, BeginRows const& arguments);

}  // namespace gpups::kernels
