// SPDX-License-Identifier: Apache-2.0
// Reads a text file with columns, row by row. All readers of such files use it, so they have the same settings and
// skip, reject and report the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/comments_in_data.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/input/matrix_market.hpp"
#include "trainer/input/odd_characters.hpp"
#include "trainer/input/table_division.hpp"
#include "trainer/input/table_headings.hpp"
#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// One thread at a time.
class TableReader {
 public:
  // Opens a file and finds its layout. Throws the errors of LineReader, find_layout() and read_matrix_head().
  TableReader(std::filesystem::path const& path, TableSettings const& settings, TableKind const& kind);

  // Sets `fields` to the fields of the next row: one for each column that the file has, then the rest if the layout
  // takes it. They are valid until the next call. Skips empty lines and comments, and counts bad lines: those that
  // cannot be divided, lack a field or have more than the file has columns. Returns false at the end of the file.
  bool next(std::vector<std::string_view>& fields);
  // Counts the row that next() returned last as a bad line. why: "has no rating", for example.
  void reject(std::string_view why) { lines_.add(lines_of_file_.position(), why); }
  // Adds what was found and skipped to the notices. Throws Error if the share of bad lines is more than
  // `bad_share_max`, or if a matrix is not complete. line_is: "a row id, a column id and a rating", for example.
  // setting: the key that allows more bad lines, or empty.
  void finish(double bad_share_max, std::string_view line_is, std::vector<std::string>& notices,
              std::string_view setting = "data.bad_share_max");

  TableLayout const& layout() const { return layout_; }
  CommentsInData const& comments_in_data() const { return comments_in_data_; }
  std::optional<MatrixHead> const& matrix() const { return matrix_; }
  // Returns "path:number" of the last row.
  std::string position() const { return lines_of_file_.position(); }
  // Returns the fields of the first rows, at most 1,000.
  std::vector<std::vector<std::string>> const& first_rows() const { return first_rows_; }

 private:
  void begin_matrix();
  void skip_heading();
  bool next_line(std::string_view& line);
  std::string_view find_odd_division(std::string_view line) const;
  std::string why_lacks(std::size_t fields, TableColumn const& column) const;
  bool is_grown() const;
  std::string why_grown() const;

  TableSettings settings_;
  TableKind kind_;
  LineReader lines_of_file_;
  TableLayout layout_;
  std::string comment_notice_{};  // of a comment that names the columns, or empty
  std::optional<MatrixHead> matrix_;
  std::vector<std::vector<std::string>> first_rows_;
  FirstRow first_row_;
  SizeRow size_row_;
  UsualHeading usual_heading_;
  bool watches_first_row_ = false;
  bool first_are_least_ = false;   // the first rows have the columns that may not lack alone, and no setting names them
  bool separator_is_odd_ = false;  // a control character
  TableFields divided_;
  BadLines lines_;
  OddCharacters odd_;
  std::uint64_t comments_ = 0;
  CommentsInData comments_in_data_;
  std::string heading_{};       // the line
  std::uint64_t repeated_ = 0;  // headings after the first
  bool in_data_ = false;
};

}  // namespace gpups::trainer
