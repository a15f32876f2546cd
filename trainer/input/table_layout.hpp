// SPDX-License-Identifier: Apache-2.0
// How the lines of a text file are divided into columns: by the settings of [data], or found in the first lines.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpups::trainer {

// The settings. Each reader of text with columns has them.
struct TableSettings {
  std::string separator = "auto";      // "auto", "tab", "comma", "semicolon", "bar", "blanks", or the text itself
  std::string heading = "auto";        // "auto", "yes", "no"
  std::string comment = "auto";        // what comment lines begin with; "auto", "" for none
  std::vector<std::string> columns{};  // for each column that the task needs: its name, or its number from 1
};

// A column that a reader needs.
struct TableColumn {
  std::string_view is;  // "subject", for messages
  std::string_view
      headings;  // what it is called in headings, in lower case without blanks, '_' and '-', between blanks
  bool is_number = false;
  bool may_lack = false;  // only of last columns
};

// What a reader expects of its files.
struct TableKind {
  std::span<TableColumn const> columns;
  std::string_view separator = "blanks";  // where the lines do not show it
  std::string_view comments{};            // each of these characters begins a comment line, if settings do not say so
  bool takes_rest = false;                // without a heading and named columns, the last column and all after it
  bool skips_rest = false;                // columns after the last one are allowed, and skipped
  bool is_square = false;  // the first two columns have names of one kind: a matrix is square, and may be symmetric
};

// How a line is divided.
struct TableLayout {
  std::string separator{};                     // empty: between blanks and tabs
  bool quotes = false;                         // a field may be in quotes, as in CSV (RFC 4180)
  bool heading = false;                        // the first line that is no comment
  bool takes_rest = false;                     // the last column, which may lack, and all after it
  std::size_t fields_max = 0;                  // of a line
  std::vector<std::size_t> columns{};          // the place of each of the reader's columns in a line
  std::vector<std::string> names{};            // of the heading
  std::string divided{"separated by blanks"};  // how, in words
  std::string notice{};                        // of names that may be divided wrongly, or empty
  std::string contradiction{};                 // message: the heading contradicts data.columns; or empty
  std::string says{};                          // what was found, for the log; empty if it is what the reader expects
};

// Returns the layout of a file that begins with these lines, without comments and empty lines. path: for messages.
// Throws Error if settings make no sense for them, or if what the columns mean cannot be told.
TableLayout find_layout(std::span<std::string_view const> lines, TableSettings const& settings, TableKind const& kind,
                        std::string_view path);

// Throws Error if a line of CSV has a quote that is not closed on the line. lines: the first of a file.
void require_closed_quotes(std::span<std::string_view const> lines, std::string_view path);

// Checks that the files of all splits have the same columns. Parts of one table, of which only the first has its
// heading, would be read in two ways.
class SameColumns {
 public:
  SameColumns() = default;
  // path: of a file whose layout is known, for messages.
  SameColumns(std::string path, TableLayout layout) : first_path_(std::move(path)), first_(std::move(layout)) {}

  bool empty() const { return first_path_.empty(); }  // no file was checked
  // Throws Error if the layout of a file contradicts that of the first one.
  void check(TableLayout const& layout, std::string_view path);
  // Returns whether a column has the name that another one has in the first file. REQUIRES: a file was checked.
  bool is_reordered(TableLayout const& layout) const;
  // Whether the first file has a heading.
  bool has_names() const { return !empty() && first_.heading && !first_.names.empty(); }
  std::string const& first_path() const { return first_path_; }
  // Returns the layout of the first file. REQUIRES: a file was checked.
  TableLayout const& first() const { return first_; }

 private:
  std::string first_path_{};
  TableLayout first_{};
};

}  // namespace gpups::trainer
