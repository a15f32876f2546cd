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
      if (quote == line.npos) return "has a quote without an end on the line (a field does not go on in the next line)";
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

// Whether the columns of numbers have some, which may have a decimal comma.
bool has_numbers(std::span<std::string_view const> fields, TableKind const& kind) {
  for (std::size_t i = 0; i < std::min(fields.size(), kind.columns.size()); ++i) {
    if (!kind.columns[i].is_number) continue;
    std::string number(fields[i]);
    std::replace(number.begin(), number.end(), ',', '.');
    if (!is_number(number)) return false;
  }
  return true;
}

// Whether the names of a column are in quotes, and others are so or have no quotes. The first line may be a heading.
bool has_quoted_column(std::span<std::string_view const> lines, std::string_view separator) {
  auto const is_in_quotes = [](std::string_view field) {
    return field.size() > 2 && field.starts_with('"') && end_of_quotes(field) == field.size() - 1;
  };
  TableFields fields;
  std::vector<std::size_t> quoted;  // rows of each column, below the first
  for (std::size_t i = 0; i < lines.size(); ++i) {
    divide(lines[i], separator, false, fields);
    quoted.resize(std::max(quoted.size(), fields.all.size()));
    for (std::size_t column = 0; column < fields.all.size(); ++column) {
      bool const in_quotes = is_in_quotes(fields.all[column]);
      if (!in_quotes && fields.all[column].find('"') != std::string_view::npos) return false;
      quoted[column] += in_quotes && i > 0 ? 1 : 0;
    }
  }
  return lines.size() > 1 && std::any_of(quoted.begin(), quoted.end(), [&](auto n) { return n + 1 == lines.size(); });
}

// Whether fields have what separates others: "a, b" is not divided by its blanks, and a line with tabs, which are not
// in quotes, not by its commas.
bool leaves_separators(std::string_view line, TableFields const& fields, std::string_view separator) {
  if (separator == kTab) return false;
  bool const has_tab = line.substr(0, line.find('"')).find('\t') != line.npos;
  return std::any_of(fields.all.begin(), fields.all.end(), [&](std::string_view field) {
    return separator.empty() ? field.size() > 1 && (field.ends_with(',') || field.ends_with(';'))
                             : has_tab && field.find('\t') != field.npos;
  });
}

Division division_by(Separator const& separator, std::span<std::string_view const> lines, TableKind const& kind,
                     bool any_columns) {
  Division division{.separator = separator};
  // Names with quotes are common in text between tabs, and words with quotes in text between blanks.
  division.quotes = separator.quotes ||
                    (!lines.empty() && is_quoted(lines.front(), separator.text) &&
                     is_quoted(lines[lines.size() > 1 ? 1 : 0], separator.text)) ||
                    (separator.text.empty() && has_quoted_blanks(lines)) ||
                    (separator.text == kTab && has_quoted_column(lines, separator.text));
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> counts;  // of fields of a line: all, and with numbers
  std::size_t const least = least_of(kind);
  std::size_t const most = any_columns || kind.skips_rest || kind.takes_rest ? ~std::size_t{0} : kind.columns.size();
  TableFields fields;
  for (std::string_view const line : lines) {
    if (!divide(line, separator.text, division.quotes, fields).empty()) continue;
    division.rows.emplace_back(fields.all.begin(), fields.all.end());
    std::size_t const size = fields.all.size();
    if (size < least || size > most || leaves_separators(line, fields, separator.text)) continue;
    division.lines_fit += kind.takes_rest ? 1 : 0;
    auto& [all, with_numbers] = counts[size];
    with_numbers += has_numbers(fields.all, kind) ? 1 : 0;
    if (++all > counts[division.fields].first || division.fields == 0) division.fields = size;
  }
  division.lines_with_numbers = counts[division.fields].second;
  if (!kind.takes_rest && division.fields > 0) division.lines_fit = counts[division.fields].first;
  return division;
}

// Whether each comma is at the end of a word, as in "Smith, John".
bool has_prose_commas(std::span<std::string_view const> lines) {
  return std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
    for (std::size_t at = line.find(','); at != line.npos; at = line.find(',', at + 1)) {
      if (!line.substr(at + 1).starts_with(' ')) return false;
    }
    return true;
  });
}

// Whether a division by another of the separators of CSV is better than one that as many lines have: "a;b;1,5" has a
// decimal comma, and "Smith, John;Doe, Jane" names with commas.
bool is_better(Division const& one, Division const& other, std::span<std::string_view const> lines) {
  if (!one.separator.quotes || !other.separator.quotes) return false;
  if (one.lines_with_numbers != other.lines_with_numbers) return one.lines_with_numbers > other.lines_with_numbers;
  return one.fields > other.fields || (other.separator.text == "," && has_prose_commas(lines));
}

// Whether a division has the same number of fields, at least 3, in each line.
bool is_table(Division const& division, std::span<std::string_view const> lines) {
  return division.fields > 2 && division.rows.size() == lines.size() &&
         std::all_of(division.rows.begin(), division.rows.end(),
                     [&](TableRow const& row) { return row.size() == division.fields; });
}

// Whether blanks divide a line that tabs divide, and into other fields.
bool differs(Division const& by_tab, Division const& by_blanks, std::span<std::string_view const> lines) {
  TableFields one, other;
  return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
    bool const fail =
        !divide(line, kTab, by_tab.quotes, one).empty() || !divide(line, "", by_blanks.quotes, other).empty();
    return !fail && one.all.size() > 1 && one.all != other.all;
  });
}

// Whether a separator, and not blanks, divides lists: it is the first one of each line, and is there twice in one.
bool is_first_and_twice(Division const& division) {
  bool const first = std::all_of(division.rows.begin(), division.rows.end(), [](TableRow const& row) {
    return row.front().find_first_of(kBlanks) == std::string::npos;
  });
  return first &&
         std::any_of(division.rows.begin(), division.rows.end(), [](TableRow const& row) { return row.size() > 2; });
}

// Whether a text has a separator between other characters; "http://" has none.
bool has_within(std::string_view text, std::string_view separator) {
  std::size_t const at = text.find(separator);
  return at != text.npos && at > 0 && at + separator.size() < text.size() && !text.substr(at + 1).starts_with("//");
}

// Whether names between blanks rarely have this sign, so that it separates: "0,brown bread,milk".
bool separates_words(Division const& division, std::string_view sign) {
  return division.separator.text.empty() && sign != ":";
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
      in_first += has_within(row.front(), other) && (!later || separates_words(best, other)) ? 1 : 0;
      in_list += lists && other != ":" && row.size() == 2 && later ? 1 : 0;
      if (shown == nullptr && (later || has_within(row.front(), other))) shown = &row;
    }
    bool const as_good = lists && separates_words(best, other) &&
                         division_by(separator_of(other), lines, kind, false).lines_fit == best.lines_fit;
    if ((2 * in_first <= all && 2 * in_list <= all && !as_good) || shown == nullptr) continue;
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
      if (rows.takes_rest && separator.text == kTab) by_tab = division;
      bool wins = division.lines_fit > 0 && (!best || division.lines_fit > best->lines_fit);
      if (!wins && best && division.lines_fit == best->lines_fit) {
        wins = rows.takes_rest && separator.text.empty() ? best->separator.text != kTab && !is_first_and_twice(*best)
                                                         : is_better(division, *best, lines);
      }
      if (wins) best = std::move(division);
    }
  };
  try_all(any_columns);
  if (!best) try_all(true);
  if (!best || 2 * best->lines_fit < lines.size()) best = division_by(separator_of(kind.separator), lines, rows, true);
  if (by_tab && 2 * by_tab->lines_fit > lines.size() && !is_table(*by_tab, lines)) {
    GPUPS_REQUIRE(!differs(*by_tab, division_by(separator_of("blanks"), lines, rows, true), lines),
                  "{} has lines with tabs and with blanks between them (names with blanks would be divided): set "
                  "data.separator to \"tab\", or to \"blanks\" if names have none",
                  path);
  }
  require_one_separator(*best, lines, kind, rows.takes_rest, path);
  best->notice = require_plain_names(*best, lines, kind, rows.takes_rest, path);
  return std::move(*best);
}

}  // namespace gpups::trainer
