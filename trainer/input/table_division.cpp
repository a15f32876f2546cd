// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/table_division.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/input/table_notation.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kFirstRows = 1000;

// In the order in which they are preferred if the lines do not decide.
constexpr Separator kSeparators[] = {
    {"tab", "\t", "separated by tabs", false},    {"double colon", "::", "separated by ::", false},
    {"comma", ",", "separated by commas", true},  {"semicolon", ";", "separated by semicolons", true},
    {"bar", "|", "separated by |", true},         {"blanks", "", "separated by blanks", false},
    {"colon", ":", "separated by colons", false},
};
constexpr std::string_view kTab = "\t";

Separator separator_of(std::string_view setting) {
  for (Separator const& known : kSeparators) {
    if (setting == known.name || (!known.text.empty() && setting == known.text)) return known;
  }
  if (setting == " ") return separator_of("blanks");
  return {setting, setting, {}, false};
}

// Returns the text between quotes, in which two quotes are one.
std::string_view unquoted(std::string_view text, TableFields& fields) {
  if (text.find('"') == text.npos) return text;
  std::string& one = fields.unquoted.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    one += text[i];
    if (text[i] == '"') ++i;
  }
  return one;
}

// Returns the place of the quote that ends a field, or npos. REQUIRES: the text begins with a quote.
std::size_t end_of_quotes(std::string_view text) {
  std::size_t at = text.find('"', 1);
  while (at != text.npos && text.substr(at + 1).starts_with('"')) at = text.find('"', at + 2);
  return at;
}

}  // namespace

std::string_view divide(std::string_view line, std::string_view separator, bool quotes, TableFields& fields) {
  fields.all.clear();
  fields.unquoted.clear();
  bool const by_blanks = separator.empty();
  std::string_view const blanks = separator == kTab ? " " : kBlanks;
  std::size_t const separator_bytes = by_blanks ? 1 : separator.size();
  auto const end_of_field = [&](std::string_view from) {
    return by_blanks ? from.find_first_of(kBlanks) : from.find(separator);
  };
  if (by_blanks) line = trim_blanks(line);
  while (true) {
    if (by_blanks || quotes) line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    std::string_view field;
    std::size_t end;
    if (quotes && line.starts_with('"')) {
      std::size_t const quote = end_of_quotes(line);
      if (quote == line.npos) return "has a quote without an end on the line";
      field = trim_blanks(unquoted(line.substr(1, quote - 1), fields));
      line.remove_prefix(quote + 1);
      end = end_of_field(line);
      if (!trim_blanks(line.substr(0, end)).empty()) return "has text after a field in quotes";
    } else {
      end = end_of_field(line);
      field = trim_blanks(line.substr(0, end));
    }
    fields.all.push_back(field);
    if (end == line.npos) return {};
    line.remove_prefix(end + separator_bytes);
  }
}

bool is_comment(std::string_view line, TableSettings const& settings, TableKind const& kind, bool in_data) {
  if (settings.comment != "auto") return !settings.comment.empty() && line.starts_with(settings.comment);
  if (line.empty()) return false;
  return kind.comments.find(line.front()) != kind.comments.npos ||
         (!in_data && (line.front() == '#' || line.front() == '%'));
}

std::vector<std::string_view> first_lines(std::string_view text, TableSettings const& settings, TableKind const& kind) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < kFirstRows) {
    std::size_t const end = text.find('\n');
    if (end == text.npos && !lines.empty()) break;  // the line may continue
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    bool const empty = line.find_first_not_of(" \t") == line.npos;
    if (!empty && !is_comment(line, settings, kind, !lines.empty())) lines.push_back(line);
  }
  return lines;
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value;
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && stop == text.data() + text.size();
}

std::size_t least_of(TableKind const& kind) {
  auto const lacks = [](TableColumn const& column) { return column.may_lack; };
  return static_cast<std::size_t>(std::find_if(kind.columns.begin(), kind.columns.end(), lacks) - kind.columns.begin());
}

namespace {

// Whether each field of a line is in quotes or a number, and one is in quotes.
bool is_quoted(std::string_view line, std::string_view separator) {
  TableFields fields;
  if (!line.starts_with('"') || !divide(line, separator, true, fields).empty()) return false;
  auto const names = std::count_if(fields.all.begin(), fields.all.end(), [](auto field) { return !is_number(field); });
  return std::count(line.begin(), line.end(), '"') >= 2 * std::max<std::ptrdiff_t>(names, 1);
}

// Whether a name between blanks is in quotes and has a blank, and all lines can be divided with quotes.
bool has_quoted_blanks(std::span<std::string_view const> lines) {
  TableFields fields;
  bool found = false;
  for (std::string_view const line : lines) {
    if (line.find('"') == line.npos) continue;
    if (!divide(line, "", true, fields).empty()) return false;
    found = found || std::any_of(fields.all.begin(), fields.all.end(),
                                 [](auto field) { return field.find_first_of(kBlanks) != field.npos; });
  }
  return found;
}

Division division_by(Separator const& separator, std::span<std::string_view const> lines, TableKind const& kind,
                     bool any_columns) {
  Division division{.separator = separator};
  // Names with quotes are common in text between tabs, and words with quotes in text between blanks.
  division.quotes = separator.quotes ||
                    (!lines.empty() && is_quoted(lines.front(), separator.text) &&
                     is_quoted(lines[lines.size() > 1 ? 1 : 0], separator.text)) ||
                    (separator.text.empty() && has_quoted_blanks(lines));
  std::map<std::size_t, std::size_t> counts;  // of fields of a line
  std::size_t const least = least_of(kind);
  std::size_t const most = any_columns || kind.skips_rest || kind.takes_rest ? ~std::size_t{0} : kind.columns.size();
  TableFields fields;
  for (std::string_view const line : lines) {
    if (!divide(line, separator.text, division.quotes, fields).empty()) continue;
    division.rows.emplace_back(fields.all.begin(), fields.all.end());
    std::size_t const size = fields.all.size();
    // "a, b" is not divided by its blanks.
    bool const divided_by_others =
        separator.text.empty() && std::any_of(fields.all.begin(), fields.all.end(), [](auto f) {
          return f.size() > 1 && (f.ends_with(',') || f.ends_with(';'));
        });
    if (size < least || size > most || divided_by_others) continue;
    division.lines_fit += kind.takes_rest ? 1 : 0;
    if (++counts[size] > counts[division.fields] || division.fields == 0) division.fields = size;
  }
  counts.erase(0);
  if (!kind.takes_rest && division.fields > 0) division.lines_fit = counts[division.fields];
  return division;
}

// Whether a division by another of the separators of CSV gives more fields: "a;b;1,5" has a decimal comma.
bool has_more_fields(Division const& one, Division const& other) {
  return one.separator.quotes && other.separator.quotes && one.lines_fit == other.lines_fit &&
         one.fields > other.fields;
}

std::vector<std::size_t> sizes_of(Division const& division) {
  std::vector<std::size_t> sizes;
  for (TableRow const& row : division.rows) sizes.push_back(row.size());
  return sizes;
}

// Whether a text has a separator between other characters; "http://" has none.
bool has_within(std::string_view text, std::string_view separator) {
  std::size_t const at = text.find(separator);
  return at != text.npos && at > 0 && at + separator.size() < text.size() && !text.substr(at + 1).starts_with("//");
}

// Throws Error if two separators divide most lines: "user:item,item", or, where lines are lists, "user item,item".
void require_one_separator(Division const& best, std::span<std::string_view const> lines, TableKind const& kind,
                           bool lists, std::string_view path) {
  if (least_of(kind) != 2 || kind.columns.front().is_number) return;
  for (std::string_view const other : {":", ",", ";", "|"}) {
    if (best.separator.text == other || best.separator.text == "::") continue;
    std::size_t in_first = 0, in_list = 0, all = 0;
    TableRow const* shown = nullptr;
    for (TableRow const& row : best.rows) {
      if (row.size() < 2) continue;
      ++all;
      bool const later = std::any_of(row.begin() + 1, row.end(), [&](auto const& f) { return has_within(f, other); });
      in_first += has_within(row.front(), other) && !later ? 1 : 0;
      in_list += lists && other != ":" && row.size() == 2 && later ? 1 : 0;
      if (shown == nullptr && (later || has_within(row.front(), other))) shown = &row;
    }
    bool const two = 2 * in_first > all || 2 * in_list > all;
    if (!two) continue;
    // "user,item,2020-01-01 10:00:00" is divided by its commas.
    Separator const by_other = separator_of(other);
    Division const division = division_by(by_other, lines, kind, true);
    GPUPS_REQUIRE(division.fields <= best.fields || division.rows.size() < lines.size(),
                  "{} has '{}' within names of lines that are {}, as in '{}' (either may separate them): set "
                  "data.separator to \"{}\", or to \"{}\" if names have '{}'",
                  path, other, best.separator.adjective, fmt::join(*shown, "' and '"), by_other.name,
                  best.separator.name, other);
    throw Error(
        fmt::format("{} has '{}' within names of lines that are {}, as in '{}' (it may separate names too, and one "
                    "separator is read): write one separator, or set data.separator to \"{}\" if names have '{}'",
                    path, other, best.separator.adjective, fmt::join(*shown, "' and '"), best.separator.name, other));
  }
}

}  // namespace

Division best_division(std::span<std::string_view const> lines, TableSettings const& settings, TableKind const& kind,
                       std::string_view path) {
  require_no_n_triples(lines, path);
  bool const any_columns = !settings.columns.empty();
  if (settings.separator != "auto") return division_by(separator_of(settings.separator), lines, kind, any_columns);
  if (least_of(kind) == 2 && !kind.columns.front().is_number) require_no_attributes(lines, path);
  TableKind rows = kind;
  rows.takes_rest = kind.takes_rest && !any_columns;
  std::optional<Division> best, by_tab;
  auto const try_all = [&](bool any_size) {
    for (Separator const& separator : kSeparators) {
      Division division = division_by(separator, lines, rows, any_size);
      bool const as_good = best && division.lines_fit == best->lines_fit && rows.takes_rest && separator.text.empty();
      if (rows.takes_rest && separator.text == kTab) {
        by_tab = std::move(division);  // blanks divide at tabs too
      } else if (division.lines_fit > 0 &&
                 (!best || division.lines_fit > best->lines_fit || as_good || has_more_fields(division, *best))) {
        best = std::move(division);
      }
    }
  };
  try_all(any_columns);
  if (!best) try_all(true);
  if (!best || 2 * best->lines_fit < lines.size()) best = division_by(separator_of(kind.separator), lines, rows, true);
  if (by_tab && by_tab->lines_fit == best->lines_fit && best->separator.text.empty()) {
    GPUPS_REQUIRE(sizes_of(*by_tab) == sizes_of(*best),
                  "{} has lines with tabs and with blanks between them (names with blanks would be divided): set "
                  "data.separator to \"tab\", or to \"blanks\" if names have none",
                  path);
  }
  require_one_separator(*best, lines, kind, rows.takes_rest, path);
  best->notice = require_plain_names(*best, lines, kind, rows.takes_rest, path);
  return std::move(*best);
}

}  // namespace gpups::trainer
