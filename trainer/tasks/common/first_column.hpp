// SPDX-License-Identifier: Apache-2.0
// A first column that is an index of the lines, and is read as something else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/table_division.hpp"
#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// Adds a notice if the first column, which no usual name in a heading calls what it is read as, counts the lines, or,
// of nodes, is always the same, and there are enough other columns. rows: the first of a file that no setting divides
// into columns. layout: of the file. path: for messages.
void say_odd_first_column(std::span<TableRow const> rows, TableLayout const& layout, TableKind const& kind,
                          std::string_view path, std::vector<std::string>& notices);

}  // namespace gpups::trainer
