// SPDX-License-Identifier: Apache-2.0
// The names of columns in headings.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/table_division.hpp"
#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

inline constexpr std::size_t kNoColumn = ~std::size_t{0};

// Returns a name of a heading without what differs between files: case, blanks, '_' and '-', and what Neo4j, Neptune
// and RecBole write before and after it, as in ":START_ID(Person)", "~from" and "user_id:token".
std::string plain_name(std::string_view name);

// Returns whether a heading is one of the usual names of a column.
bool is_called(std::string_view heading, TableColumn const& column);

// Returns whether a heading has words before a usual name of a column: "My Rating", "my_rating", "myRating".
bool ends_with_name(std::string_view heading, TableColumn const& column);

// Returns whether a heading may be that of a column although another one is read as it: its name again, with words
// before it, or with an end as pandas writes it, as in "rating_y" and "rating.1".
bool may_be_called(std::string_view heading, TableColumn const& column);

// Returns whether a first column with this heading is an index, which pandas and R write beside the data: it has no
// name, or one such as "Unnamed: 0", "...1" and "rownames".
bool is_index_name(std::string_view heading);

// Returns how many columns are an index in front of the data: 1 if the first one has such a name, or another that an
// index may have, such as "index" and "X1", and counts the rows; else 0. rows: below the heading.
std::size_t index_columns(TableRow const& heading, std::span<TableRow const> rows, TableKind const& kind);

// Returns whether the first column counts the rows, from 0 or from 1.
bool counts_rows(std::span<TableRow const> rows);

// Returns the place of each column by its usual names, of which earlier ones count more; kNoColumn for those that the
// heading does not have, or has twice.
std::vector<std::size_t> places_by_name(TableRow const& heading, TableKind const& kind);

// Returns whether all columns that may not lack have a place of their own.
bool has_required_names(std::vector<std::size_t> const& places, TableKind const& kind);

// Returns the places of the columns that are read as far as the settings, or the usual names in the first row, tell
// them; else nothing.
std::vector<std::size_t> used_columns(TableSettings const& settings, TableKind const& kind, TableRow const& first);

}  // namespace gpups::trainer
