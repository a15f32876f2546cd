// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/comment_heading.hpp"
#include "trainer/input/tgf_notation.hpp"

namespace gpups::trainer {
namespace {

// Throws Error if a text is a bipartite network of KONECT: each side has the numbers from 1 on.
void require_no_sides(std::string_view text, std::string_view path) {
  std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  if (!line.starts_with('%')) return;
  line.remove_prefix(1);
  std::vector<std::string_view> words;
  split_at_blanks(line, words);
  GPUPS_REQUIRE(words.empty() || words.front() != "bip",
                "{} is a bipartite network of KONECT (a node of the left and one of the right with the same number "
                "would be one node): write names that differ, without the first line, for example with awk "
                "'!/^%/ {{print $1, \"r\" $2, $3}}', or read the file as ratings or interactions",
                path);
}

}  // namespace

TableReader::TableReader(std::filesystem::path const& path, TableSettings const& settings, TableKind const& kind)
    : settings_(settings), kind_(kind), lines_of_file_(path), first_row_(kind), size_row_(kind), usual_heading_(kind) {
  std::string_view const text = lines_of_file_.ahead();
  // A layout found in other data would give a misleading error. The last character may continue in the next block.
  std::size_t const wrong = find_no_text(text);
  if (wrong < text.size() && text.size() - wrong > 3) require_text(text, lines_of_file_.path(), 1);
  if (is_matrix(text)) {
    begin_matrix();
    return;
  }
  if (kind.is_square) require_no_sides(text, lines_of_file_.path());
  if (kind.is_square && settings.comment == "auto") require_no_tgf(text, lines_of_file_.path());
  constexpr std::size_t kBannerWithin = 256;
  GPUPS_REQUIRE(text.substr(0, kBannerWithin).find("MatrixMarket") == text.npos,
                "{} has a banner of the Matrix Market format, but does not begin with '%%MatrixMarket' (its size line "
                "would be data): correct the first line",
                lines_of_file_.path());
  std::vector<std::string_view> lines = first_lines(text, settings_, kind_);
  layout_ = find_layout(lines, settings_, kind_, lines_of_file_.path());
  separator_is_odd_ = layout_.separator.size() == 1 && layout_.separator != "\t" && layout_.separator.front() < ' ';
  watches_first_row_ = !layout_.heading && settings_.heading == "auto";
  if (layout_.heading && !lines.empty()) lines.erase(lines.begin());
  for (std::string_view const line : lines) {
    if (!divide(line, layout_.separator, layout_.quotes, divided_).empty()) continue;
    first_rows_.emplace_back(divided_.all.begin(), divided_.all.end());
  }
  if (first_rows_.empty()) return;
  first_are_least_ = settings_.columns.empty() && !layout_.heading &&
                     std::all_of(first_rows_.begin(), first_rows_.end(),
                                 [&](auto const& row) { return row.size() == least_of(kind_); });
  comment_notice_ =
      require_order_of_comment(text, first_rows_.front().size(), layout_, settings_, kind_, lines_of_file_.path());
}

void TableReader::begin_matrix() {
  matrix_ = read_matrix_head(lines_of_file_, kind_);
  std::size_t const most = std::min<std::size_t>(kind_.columns.size(), matrix_->has_values ? 3 : 2);
  std::size_t const count = settings_.columns.empty() ? most : settings_.columns.size();
  for (std::size_t i = 0; i < count; ++i) {
    GPUPS_REQUIRE(
        settings_.columns.empty() || (i < most && count > 1 && settings_.columns[i] == std::to_string(i + 1)),
        "{} is a matrix in the Matrix Market format, and data.columns is set (its columns have their meaning): leave "
        "data.columns out",
        lines_of_file_.path());
    layout_.columns.push_back(i);
  }
  layout_.fields_max = matrix_->has_values ? 3 : 2;
  layout_.says = "a matrix in the Matrix Market format";
  settings_.comment = "%";
}

// Sets `line` to the next line with data.
bool TableReader::next_line(std::string_view& line) {
  while (lines_of_file_.next(line)) {
    if (line.find_first_not_of(" \t") == line.npos) continue;
    if (is_comment(line, settings_, kind_, in_data_)) {
      ++comments_;
      if (in_data_) comments_in_data_.add(line, layout_, divided_.all.size());
      continue;
    }
    bool const is_heading = !in_data_ && layout_.heading;
    in_data_ = true;
    if (is_heading) {
      heading_ = line;
    } else if (layout_.heading && line == heading_) {
      ++repeated_;
    } else {
      return true;
    }
  }
  return false;
}

namespace {

// Whether a line is what programs print around a table: "---|---", "(12 rows)".
bool is_decoration(std::string_view line) {
  if (line.starts_with('(') && (line.ends_with(" rows)") || line.ends_with(" row)"))) return true;
  return line.find("---") != line.npos && line.find_first_not_of("-+|: \t") == line.npos;
}

// Returns a notice if names of the first rows are in quotes, which are part of them: in double ones, or all of them in
// single ones.
std::string quoted_names(std::vector<std::vector<std::string>> const& rows, bool reads_double) {
  std::vector<std::string const*> in_double, in_single;
  std::size_t names = 0;
  for (auto const& row : rows) {
    for (std::string const& name : row) {
      if (name.empty() || is_number(name)) continue;
      ++names;
      if (name.size() < 3 || name.front() != name.back()) continue;
      if (name.front() == '"' && !reads_double) in_double.push_back(&name);
      if (name.front() == '\'') in_single.push_back(&name);
    }
  }
  if (in_single.size() < names) in_single.clear();
  auto const& found = in_double.empty() ? in_single : in_double;
  if (found.empty()) return {};
  return fmt::format("{} of the first lines in quotes, such as {}: the quotes are part of the names",
                     with_count(found.size(), "name"), *found.front());
}

}  // namespace

// Returns what shows that a line, which could be divided, is no row, or has another separator or quotes than was found;
// or nothing.
std::string_view TableReader::find_odd_division(std::string_view line) const {
  if (is_decoration(line)) return "is no row of the table";
  std::string_view const first = divided_.all.front();
  if (divided_.all.size() == 1 && layout_.takes_rest && first.size() > 1 && first.ends_with(':')) {
    return "has ':' after a name and nothing else (the lines below may belong to it)";
  }
  auto const any = [this](auto is) { return std::any_of(divided_.all.begin(), divided_.all.end(), is); };
  bool const by_tabs = layout_.separator == "\t" && !layout_.quotes;
  if (!by_tabs && line.find('\t') != line.npos && any([](auto field) { return field.find('\t') != field.npos; })) {
    return "has a tab within a field";
  }
  // Lists between tabs.
  if (layout_.takes_rest && layout_.separator == "\t" && divided_.all.size() == 1 && first.find(' ') != first.npos) {
    return "has blanks and no tab, which separates the names of the first lines";
  }
  if (layout_.separator.empty() && !layout_.quotes && line.find('"') != line.npos) {
    auto const opens = [](auto field) { return field.size() > 1 && field.starts_with('"') && !field.ends_with('"'); };
    auto const closes = [](auto field) { return field.size() > 1 && !field.starts_with('"') && field.ends_with('"'); };
    if (any(opens) && any(closes)) return "has a name in quotes with a blank, and not all lines have such quotes";
  }
  return {};
}

std::string TableReader::why_lacks(std::size_t fields, TableColumn const& column) const {
  return fmt::format("has {}, none for {}{}", with_count(fields, "field"), column.is,
                     fields == 1 && lines_.lines == 1 && is_number(divided_.all.front())
                         ? " (it may be the number of the lines below: remove it)"
                         : "");
}

// Whether a line has more fields than all of the first ones, which have the columns alone that may not lack: what they
// mean cannot be told, as where a table of two columns and one of three were joined.
bool TableReader::is_grown() const {
  std::size_t const least = least_of(kind_);
  if (!first_are_least_ || divided_.all.size() <= least) return false;
  auto const rest = std::span(divided_.all.begin() + static_cast<std::ptrdiff_t>(least), divided_.all.end());
  return std::any_of(rest.begin(), rest.end(), [](std::string_view field) { return !field.empty(); });
}

std::string TableReader::why_grown() const {
  return fmt::format(
      "has {}, and each of the first {} has {} (data.columns = {}; if they are something else, name two "
      "columns with data.columns, and write lines of each size to files of their own)",
      with_count(divided_.all.size(), "field"), with_count(first_rows_.size(), "line"), least_of(kind_),
      kind_.takes_rest ? fmt::format("[\"1\", \"2-\"] reads all fields after the first as {}s", kind_.columns.back().is)
                       : fmt::format("[\"1\", \"2\", \"3\"] reads the third as {}", kind_.columns.back().is));
}

bool TableReader::next(std::vector<std::string_view>& fields) {
  std::string_view line;
  while (next_line(line)) {
    ++lines_.lines;
    if (!lines_of_file_.is_plain() && !separator_is_odd_) {
      odd_.check(line, lines_of_file_.line_number());
      if (line.find('\r') != line.npos) odd_.add('\r', lines_of_file_.line_number());
    }
    if (std::string_view const wrong = divide(line, layout_.separator, layout_.quotes, divided_); !wrong.empty()) {
      reject(wrong);
      continue;
    }
    if (std::string_view const odd = find_odd_division(line); !odd.empty()) {
      reject(odd);
      continue;
    }
    std::size_t const size = divided_.all.size();
    if (size > layout_.fields_max) {
      reject(fmt::format("has {} instead of {}", with_count(size, "field"), layout_.fields_max));
      continue;
    }
    if (is_grown()) {
      reject(why_grown());
      continue;
    }
    fields.clear();
    std::string wrong;
    if (matrix_ && size >= 2) wrong = check_entry(divided_.all, *matrix_, kind_);
    for (std::size_t i = 0; i < layout_.columns.size() && wrong.empty(); ++i) {
      std::size_t const place = layout_.columns[i];
      if (place >= size) {
        bool const may_lack = kind_.columns[i].may_lack || (i > 0 && layout_.takes_rest);
        if (!may_lack) wrong = why_lacks(size, kind_.columns[i]);
      } else if (divided_.all[place].empty()) {
        if (kind_.columns[i].may_lack) break;  // pandas writes a missing value as an empty field
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
    if (!matrix_ && settings_.heading != "no" && usual_heading_.is(fields)) {
      reject("has the names of the columns (data.heading = \"no\" reads them as data)");
      continue;
    }
    if (watches_first_row_) {
      first_row_.add(fields);
      size_row_.add(fields);
    }
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
  if (!layout_.notice.empty()) notices.push_back(fmt::format("{} {}", path, layout_.notice));
  if (!comment_notice_.empty()) notices.push_back(fmt::format("{} {}", path, comment_notice_));
  if (!layout_.contradiction.empty()) notices.push_back(fmt::format("{}: {}", path, layout_.contradiction));
  if (std::string const quoted = quoted_names(first_rows_, layout_.quotes); !quoted.empty()) {
    notices.push_back(fmt::format("{} has {}", path, quoted));
  }
  first_row_.say(path, notices);
  size_row_.say(path, lines_.lines, notices);
  odd_.say(path, notices);
  if (repeated_ > 0) {
    notices.push_back(fmt::format("skipped {} of {}, after the first: files with a heading each were joined",
                                  with_count(repeated_, "heading"), path));
  }
  if (comments_ > 0) notices.push_back(fmt::format("skipped {} of {}", with_count(comments_, "comment line"), path));
  if (settings_.comment == "auto") comments_in_data_.say(path, notices);
  lines_.report(path, bad_share_max, fmt::format("{}, {}", line_is, layout_.divided), setting, notices);
}

}  // namespace gpups::trainer
