// SPDX-License-Identifier: Apache-2.0
// Lines that are read as data, and may be headings.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// Returns whether fields are the numbers from 0 on: pandas writes such a heading for columns without names.
bool counts_columns(std::span<std::string_view const> fields);

// Returns the notice that the first line of a file may be a heading. why: "no other has a name of it", for example.
std::string heading_notice(std::string_view path, std::string_view why, std::span<std::string const> fields);

// Finds out whether the first row of a file may be a heading with names that are not the usual ones: no other row has a
// name of it. Takes a few comparisons for each row before one that has.
class FirstRow {
 public:
  explicit FirstRow(TableKind const& kind) : kind_(kind) {}

  // Counts a row. fields: those of the columns that the reader needs.
  void add(std::span<std::string_view const> fields);
  // Adds a notice if the first row may be a heading.
  void say(std::string_view path, std::vector<std::string>& notices) const;

 private:
  void begin(std::span<std::string_view const> fields);
  void add_to_pairs(std::span<std::string_view const> fields);
  bool others_repeat() const;

  TableKind kind_;
  std::vector<std::string> first_{};
  std::vector<std::vector<std::string>> few_{};      // the first of the other rows
  std::vector<std::string> shapes_{};                // of the first row's fields
  std::uint64_t others_ = 0;                         // rows that are not the first one again
  bool counts_ = false;                              // the fields are 0, 1, 2
  bool alone_ = true;                                // no other row has a name of the first one
  bool first_again_ = false, second_again_ = false;  // of 0 and 1 above pairs: another row has it, in its column
  bool digits_ = false;                              // the first row has some
  std::uint64_t alike_ = 0;                          // other rows with names of the same shapes
};

// Finds out whether the first row of a file may be its sizes, such as the numbers of rows, columns and samples: the
// last is that of the lines below it, or two numbers above edges are not exceeded. Takes a few comparisons
// for each row if the first one has whole numbers only.
class SizeRow {
 public:
  explicit SizeRow(TableKind const& kind) : kind_(kind) {}

  // Counts a row. fields: those of the columns that the reader needs.
  void add(std::span<std::string_view const> fields);
  // Adds a notice if the first row may be the sizes. lines: of data, with the first row.
  void say(std::string_view path, std::uint64_t lines, std::vector<std::string>& notices) const;

 private:
  void begin(std::span<std::string_view const> fields);

  TableKind kind_;
  std::vector<std::uint64_t> sizes_{};
  bool may_be_ = true;
  bool within_ = true;   // no other row has an id above its size
  bool longer_ = false;  // a row has more fields than the first one
};

// Finds rows of data that have the usual names of the columns: a heading in the middle of a file, when several files
// were joined.
class UsualHeading {
 public:
  explicit UsualHeading(TableKind const& kind);
  // fields: those of the columns that the reader needs.
  bool is(std::span<std::string_view const> fields) const;

 private:
  std::vector<std::vector<std::string>> names_{};  // of each column that may not lack
  std::bitset<256> firsts_{};                      // the characters with which a name of the columns may begin
  std::size_t longest_ = 0;                        // more characters have other names
};

}  // namespace gpups::trainer
