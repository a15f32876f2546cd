// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/text_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>
#include <vector>

#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/separator_choice.hpp"
#include "trainer/input/table_division.hpp"
#include "trainer/input/table_headings.hpp"
#include "trainer/tasks/click/text/text_rows.hpp"
#include "trainer/tasks/click/text/weighted_cells.hpp"

namespace gpups::trainer {
namespace {

std::string in_lower_case(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Whether a line may be a heading: it has no number, and a name begins with a letter.
bool may_be_heading(std::string_view line) {
  TableFields fields;
  (void)divide(line, "\t", false, fields);
  return std::none_of(fields.all.begin(), fields.all.end(), is_number) &&
         std::any_of(fields.all.begin(), fields.all.end(), [](std::string_view field) {
           return !field.empty() && std::isalpha(static_cast<unsigned char>(field.front())) != 0;
         });
}

}  // namespace

TextColumns::TextColumns(std::string_view first_chunk, Layout const& layout, TableSettings const& settings,
                         std::string_view path)
    : path_(path), settings_(settings) {
  usual_.separator = "\t";
  for (std::size_t i = 0; i < layout.columns(); ++i) usual_.columns.push_back(i);
  auto const lines = first_lines(first_chunk, settings, {.columns = {}, .separator = "tab"});
  find_table(lines, layout);
  auto const rows = std::span(lines).subspan(this->layout().heading && !lines.empty() ? 1 : 0);
  require_bars(rows, this->layout(), layout, path);
  if (std::string blanks = blanks_at_bars(rows, this->layout(), layout, path); !blanks.empty()) {
    notices_.push_back(std::move(blanks));
  }
  if (lines.empty() || settings.heading != "auto" || this->layout().heading) return;
  TableFields first;
  (void)divide(lines.front(), table_ ? std::string_view(table_->separator) : "\t", table_ && table_->quotes, first);
  if (first.all.size() > 2 && counts_columns(first.all)) {
    std::vector<std::string> const fields(first.all.begin(), first.all.end());
    notices_.push_back(heading_notice(path, "it has the numbers of the columns", fields));
  }
}

void TextColumns::find_table(std::span<std::string_view const> lines, Layout const& layout) {
  TableKind kind{.columns = {}, .separator = "tab"};
  bool const any_set = settings_.separator != "auto" || settings_.heading != "auto" || settings_.comment != "auto" ||
                       !settings_.columns.empty();
  auto const with_tab =
      std::count_if(lines.begin(), lines.end(), [](auto line) { return line.find('\t') != line.npos; });
  bool const has_tabs = 2 * with_tab > std::ssize(lines);
  if (!any_set && (lines.empty() || (has_tabs && !may_be_heading(lines.front())))) return;
  if (settings_.separator == "auto" && has_tabs) settings_.separator = "tab";  // empty fields may be between two tabs

  std::vector<std::string> names;
  names.reserve(layout.columns());  // `columns` refers to them
  std::vector<TableColumn> columns{{.is = "label", .headings = "label click clicked target y", .is_number = true}};
  auto const add = [&](std::string const& name, bool is_number) {
    names.push_back(in_lower_case(name));
    columns.push_back({.is = name, .headings = names.back(), .is_number = is_number});
  };
  for (std::string const& name : layout.numbers) add(name, true);
  for (CategoryField const& field : layout.categories) add(field.name, false);
  kind.columns = columns;
  // Lines that cannot be divided into so many columns are bad lines.
  if (Division const division = best_division(lines, settings_, kind, path_);
      !any_set && (division.fields < layout.columns() || 2 * division.lines_fit < lines.size() ||
                   division.separator.text.empty())) {
    require_closed_quotes(lines, path_);
    return;
  }
  table_ = find_layout(lines, settings_, kind, path_);
  if (!any_set && table_->says.empty()) table_.reset();
  if (!table_ || table_->says.empty()) return;
  std::size_t const label = table_->columns.front();
  table_->says += label < table_->names.size() ? fmt::format("; the label is '{}'", table_->names[label])
                                               : fmt::format("; the label is column {}", label + 1);
}

std::string TextColumns::append(std::string_view line, std::string& text) const {
  TableFields fields;
  if (std::string_view const wrong = divide(line, table_->separator, table_->quotes, fields); !wrong.empty())
    return std::string(wrong);
  std::size_t const size = fields.all.size();
  std::size_t const least = *std::max_element(table_->columns.begin(), table_->columns.end()) + 1;
  if (size > table_->fields_max) return fmt::format("has {}, not {}", with_count(size, "field"), table_->fields_max);
  if (size < least) return fmt::format("has {}, and {} are needed", with_count(size, "field"), least);
  for (std::size_t const place : table_->columns) {
    std::string_view const field = fields.all[place];
    if (field.find('\t') != field.npos) return "has a tab within a field";
    text += field;
    text += '\t';
  }
  text.back() = '\n';
  return {};
}

void TextColumns::rewrite(TextChunk& chunk, BadLines& bad) const {
  if (!table_) return;
  std::string text;
  text.reserve(chunk.text.size() + kTextPadding);
  bool in_data = chunk.first_line != 1;
  bool before_heading = !in_data && table_->heading;
  std::uint64_t number = chunk.first_line;
  for (std::string_view rest = chunk.text; !rest.empty(); ++number) {
    std::size_t const end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    bool const is_empty = line.find_first_not_of(" \t") == line.npos;
    bool const is_data = !is_empty && !is_comment(line, settings_, TableKind{.columns = {}}, in_data);
    in_data = in_data || is_data;
    if (!is_data || std::exchange(before_heading, false)) {
      text += '\n';
      continue;
    }
    std::size_t const before = text.size();
    std::string const wrong = append(line, text);
    if (wrong.empty()) continue;
    text.resize(before);
    text += '\n';
    ++bad.lines;
    bad.add(fmt::format("{}:{}", path_, number), wrong);
  }
  chunk.buffer = std::make_unique_for_overwrite<char[]>(text.size() + kTextPadding);
  std::memcpy(chunk.buffer.get(), text.data(), text.size());
  std::memset(chunk.buffer.get() + text.size(), 0, kTextPadding);
  chunk.text = {chunk.buffer.get(), text.size()};
}

}  // namespace gpups::trainer
