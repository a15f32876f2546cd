// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

constexpr std::string_view kMatrixMarket = "%%MatrixMarket";

bool read_count(std::string_view field, std::uint64_t& count) {
  auto const [stop, error] = std::from_chars(field.data(), field.data() + field.size(), count);
  return error == std::errc{} && stop == field.data() + field.size();
}

}  // namespace

TableReader::TableReader(std::filesystem::path const& path, TableSettings const& settings, TableKind const& kind)
    : settings_(settings), kind_(kind), lines_of_file_(path), first_row_(kind) {
  std::string_view const text = lines_of_file_.ahead();
  // A layout found in other data would give a misleading error. The last character may continue in the next block.
  std::size_t const wrong = find_no_text(text);
  if (wrong < text.size() && text.size() - wrong > 3) require_text(text, lines_of_file_.path(), 1);
  std::string_view const first = text.substr(0, kMatrixMarket.size());
  if (std::equal(first.begin(), first.end(), kMatrixMarket.begin(), kMatrixMarket.end(),
                 [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); })) {
    read_matrix_head();
    return;
  }
  std::vector<std::string_view> lines = first_lines(text, settings_, kind_);
  layout_ = find_layout(lines, settings_, kind_, lines_of_file_.path());
  watches_first_row_ = !layout_.heading && settings_.heading == "auto";
  if (layout_.heading && !lines.empty()) lines.erase(lines.begin());
  for (std::string_view const line : lines) {
    if (!divide(line, layout_.separator, layout_.quotes, divided_).empty()) continue;
    first_rows_.emplace_back(divided_.all.begin(), divided_.all.end());
  }
}

void TableReader::read_matrix_head() {
  std::string_view line;
  lines_of_file_.next(line);
  std::string first(line);
  std::transform(first.begin(), first.end(), first.begin(), [](unsigned char c) { return std::tolower(c); });
  split_at_blanks(first, divided_.all);
  auto const has = [&](std::string_view word) {
    return std::find(divided_.all.begin(), divided_.all.end(), word) != divided_.all.end();
  };
  GPUPS_REQUIRE(
      has("coordinate") && (has("real") || has("integer") || has("pattern")) && (has("general") || has("symmetric")),
      "{} has the format '{}' (a sparse matrix is read, of real numbers, integers or a pattern): write it as "
      "'matrix coordinate real general'",
      lines_of_file_.path(), line);
  bool const takes_values = kind_.columns.size() > 2;
  GPUPS_REQUIRE(!takes_values || kind_.columns[2].is_number,
                "{} is a matrix in the Matrix Market format (a line of it has two numbers and a value): use a file of "
                "names",
                lines_of_file_.path());
  matrix_ = MatrixHead{.has_values = !has("pattern"), .symmetric = has("symmetric")};
  layout_.columns = {0, 1};
  if (takes_values && matrix_->has_values) layout_.columns.push_back(2);
  layout_.fields_max = matrix_->has_values ? 3 : 2;
  layout_.says = "a matrix in the Matrix Market format";
  settings_.comment = "%";
  while (lines_of_file_.next(line)) {
    split_at_blanks(line, divided_.all);
    if (divided_.all.empty() || line.front() == '%') continue;
    GPUPS_REQUIRE(divided_.all.size() == 3 && read_count(divided_.all[0], matrix_->rows) &&
                      read_count(divided_.all[1], matrix_->columns) && read_count(divided_.all[2], matrix_->entries),
                  "{}: the line does not have the numbers of rows, columns and entries (they follow the comments): "
                  "correct the line",
                  position());
    return;
  }
  throw Error(
      fmt::format("{} ends before its size line (the file is incomplete): use a complete file", lines_of_file_.path()));
}

// Sets `line` to the next line with data.
bool TableReader::next_line(std::string_view& line) {
  while (lines_of_file_.next(line)) {
    if (line.find_first_not_of(" \t") == line.npos) continue;
    if (is_comment(line, settings_, kind_, in_data_)) {
      comments_ += settings_.comment == "auto" ? 1 : 0;
      continue;
    }
    bool const is_heading = !in_data_ && layout_.heading;
    in_data_ = true;
    if (!is_heading) return true;
  }
  return false;
}

bool TableReader::next(std::vector<std::string_view>& fields) {
  std::string_view line;
  while (next_line(line)) {
    ++lines_.lines;
    if (std::string_view const wrong = divide(line, layout_.separator, layout_.quotes, divided_); !wrong.empty()) {
      reject(wrong);
      continue;
    }
    std::size_t const size = divided_.all.size();
    if (size > layout_.fields_max) {
      reject(fmt::format("has {} instead of {}", with_count(size, "field"), layout_.fields_max));
      continue;
    }
    fields.clear();
    std::string wrong;
    for (std::size_t i = 0; i < layout_.columns.size() && wrong.empty(); ++i) {
      std::size_t const place = layout_.columns[i];
      if (place >= size) {
        bool const may_lack = kind_.columns[i].may_lack || (i > 0 && layout_.takes_rest);
        if (!may_lack) wrong = fmt::format("has {}, none for {}", with_count(size, "field"), kind_.columns[i].is);
      } else if (divided_.all[place].empty()) {
        wrong = fmt::format("has an empty field for {}", kind_.columns[i].is);
      } else {
        fields.push_back(divided_.all[place]);
      }
    }
    if (!wrong.empty()) {
      reject(wrong);
      continue;
    }
    if (layout_.takes_rest) {
      for (std::size_t i = layout_.columns.back() + 1; i < size; ++i) {
        if (!divided_.all[i].empty()) fields.push_back(divided_.all[i]);
      }
    }
    if (watches_first_row_) first_row_.add(fields);
    return true;
  }
  return false;
}

void TableReader::finish(double bad_share_max, std::string_view line_is, std::vector<std::string>& notices,
                         std::string_view setting) {
  std::string const& path = lines_of_file_.path();
  GPUPS_REQUIRE(!matrix_ || lines_.lines == matrix_->entries,
                "{} has {} entries, but its size line says {} (the file is incomplete, or the line is wrong): use a "
                "complete file",
                path, lines_.lines, matrix_->entries);
  if (!layout_.says.empty()) notices.push_back(fmt::format("{}: {}", path, layout_.says));
  first_row_.say(path, notices);
  if (comments_ > 0) notices.push_back(fmt::format("skipped {} of {}", with_count(comments_, "comment line"), path));
  lines_.report(path, bad_share_max, fmt::format("{}, {}", line_is, layout_.divided), setting, notices);
}

}  // namespace gpups::trainer
