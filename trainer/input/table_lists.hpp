// SPDX-License-Identifier: Apache-2.0
// Lists within a field, which would be read as one name.
#pragma once

#include <set>
#include <span>
#include <string_view>

#include "trainer/input/table_division.hpp"

namespace gpups::trainer {

// Returns the first field that may be a list, or nothing. Most fields with `separator` within have parts that are
// numbers or letters and digits, or parts that are in `names` or weights such as 0.8; and so many fields have it that
// it is no exception.
std::string_view find_list(std::span<std::string_view const> fields, std::set<std::string_view> const& names,
                           std::string_view separator);

// Throws Error if the names of a column may be lists between another separator: "a,b c d". rows: of data. path: for
// messages.
void require_no_lists(std::span<TableRow const> rows, Separator const& separator, TableLayout const& layout,
                      TableKind const& kind, std::string_view path);

}  // namespace gpups::trainer
