// SPDX-License-Identifier: Apache-2.0
// Divides lines of text into fields.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// The fields of a line, without blanks around them.
struct TableFields {
  std::vector<std::string_view> all{};
  std::deque<std::string> unquoted{};  // the text of fields that had quotes within quotes
};

// Divides a line into `fields`, which refer to the line. Returns what is wrong with the line, or nothing.
std::string_view divide(std::string_view line, std::string_view separator, bool quotes, TableFields& fields);

// Returns the index of the first line with a quote that is not closed on the line, if the lines may be CSV; else their
// number.
std::size_t find_open_quote(std::span<std::string_view const> lines);

// Returns whether a line is a comment. in_data: there was data before it.
bool is_comment(std::string_view line, TableSettings const& settings, TableKind const& kind, bool in_data);

// Returns the first lines of a text, at most 1,000, without comments and empty lines.
std::vector<std::string_view> first_lines(std::string_view text, TableSettings const& settings, TableKind const& kind);

// Returns whether text is a number, which may be infinite or not a number.
bool is_number(std::string_view text);

// What is between columns.
struct Separator {
  std::string_view name, text, adjective;  // text: empty for blanks
  bool quotes;                             // fields may be in quotes, wherever they are
};

using TableRow = std::vector<std::string>;

// Returns how many columns a line must have: those before the first that may lack.
std::size_t least_of(TableKind const& kind);

// Returns the separators that are tried, in the order in which they are preferred if the lines do not decide.
std::span<Separator const> separators();
// Returns the separator that data.separator names; any other text is one.
Separator separator_of(std::string_view setting);

// The first lines of a file, divided in one way.
struct Division {
  Separator separator;
  bool quotes = false;
  std::vector<TableRow> rows{};        // of lines that can be divided
  std::size_t fields = 0;              // of most lines that have enough
  std::size_t lines_with_numbers = 0;  // of them, in the columns of numbers
  std::size_t lines_fit = 0;           // which have so many; with takes_rest, which have enough
  std::string notice{};                // of names that may be divided wrongly, or empty
};

// Divides lines. any_columns: lines may have more fields than the reader has columns.
Division division_by(Separator const& separator, std::span<std::string_view const> lines, TableKind const& kind,
                     bool any_columns);

}  // namespace gpups::trainer
