// SPDX-License-Identifier: Apache-2.0
// Text of click data in other columns than parse_rows() reads: other separators, quotes, a heading, comments, another
// order. Such lines are rewritten before they are parsed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/line_reader.hpp"
#include "trainer/input/table_layout.hpp"
#include "trainer/tasks/click/layout.hpp"
#include "trainer/tasks/click/text/text_chunks.hpp"

namespace gpups::trainer {

class TextColumns {
 public:
  // Finds the columns in the first chunk of a file. Throws the errors of find_layout(). path: for messages.
  TextColumns(std::string_view first_chunk, Layout const& layout, TableSettings const& settings, std::string_view path);

  // Rewrites the lines of a chunk in the form that parse_rows() reads. A heading, comments and bad lines, which are
  // counted in `bad`, become empty. Any thread.
  void rewrite(TextChunk& chunk, BadLines& bad) const;
  // How lines are divided, such as "separated by tabs", and what was found, for the log; empty if it is the usual.
  std::string_view divided() const { return table_ ? table_->divided : std::string_view("separated by tabs"); }
  std::string_view says() const { return table_ ? table_->says : std::string_view(); }
  // Sentences about the first lines.
  std::vector<std::string> const& notices() const { return notices_; }
  // The layout of the lines.
  TableLayout const& layout() const { return table_ ? *table_ : usual_; }

 private:
  // Sets `table_` if the lines are not as parse_rows() reads them.
  void find_table(std::span<std::string_view const> lines, Layout const& layout);
  // Appends the columns of a line. Returns what is wrong with it, or nothing.
  std::string append(std::string_view line, std::string& text) const;

  std::string path_;
  std::vector<std::string> notices_{};
  TableSettings settings_;
  TableLayout usual_{};                 // of lines that are as parse_rows() reads them
  std::optional<TableLayout> table_{};  // nothing: lines are like that
};

}  // namespace gpups::trainer
