// SPDX-License-Identifier: Apache-2.0
// Finds lines that are read as a user and items, and are something else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/dictionary.hpp"
#include "trainer/input/table_division.hpp"
#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// Throws Error if the first rows of a file may be a user, an item and other columns: there are as many fields in each,
// and those after the second are numbers, or a user has several lines, or columns have other names. So it does for
// numbers of items, for rows of a matrix, and for sequences of SPMF. path: for messages.
void require_lists(std::span<TableRow const> rows, std::string_view path);

// Adds a notice if nearly all users are also items, and their names are no numbers: lines may be baskets without a
// user.
void say_baskets(Dictionary const& users, Dictionary const& items, std::string_view path,
                 std::vector<std::string>& notices);

// Adds a notice if the items of all rows begin with a date: a column of times may have been named.
void say_dates(std::span<TableRow const> rows, TableLayout const& layout, std::string_view path,
               std::vector<std::string>& notices);

}  // namespace gpups::trainer
