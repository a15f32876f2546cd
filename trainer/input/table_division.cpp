// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/table_division.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "trainer/input/line_reader.hpp"

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
constexpr std::string_view kOpenQuote =
    "has a quoted field that goes on in the next line (line breaks in fields are not read)";

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

std::span<Separator const> separators() { return kSeparators; }

Separator separator_of(std::string_view setting) {
  for (Separator const& known : kSeparators) {
    if (setting == known.name || (!known.text.empty() && setting == known.text)) return known;
  }
  if (setting == " ") return separator_of("blanks");
  return {setting, setting, {}, false};
}

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
      if (quote == line.npos) return kOpenQuote;
      bool const escaped = line[quote - 1] == '\\';
      field = trim_blanks(unquoted(line.substr(1, quote - 1), fields));
      line.remove_prefix(quote + 1);
      end = end_of_field(line);
      if (!trim_blanks(line.substr(0, end)).empty()) {
        return escaped ? "has \\\" in a field in quotes (a quote within is written as two: \"\")"
                       : "has text after a field in quotes (a quote within is written as two: \"\")";
      }
    } else {
      end = end_of_field(line);
      field = trim_blanks(line.substr(0, end));
    }
    fields.all.push_back(field);
    if (end == line.npos) return {};
    line.remove_prefix(end + separator_bytes);
  }
}

std::size_t find_open_quote(std::span<std::string_view const> lines) {
  TableFields fields;
  for (Separator const& separator : kSeparators) {
    if (!separator.quotes) continue;
    auto const has = [&](std::string_view line) { return line.find(separator.text) != line.npos; };
    bool const most_have = 2 * std::count_if(lines.begin(), lines.end(), has) >= std::ssize(lines);
    std::string const quoted = std::string(separator.text) + '"';
    for (std::size_t i = 0; i < lines.size(); ++i) {
      bool const may_be = most_have ? lines[i].find('"') != lines[i].npos : lines[i].find(quoted) != lines[i].npos;
      if (may_be && divide(lines[i], separator.text, true, fields) == kOpenQuote) return i;
    }
  }
  return lines.size();
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

// Whether each column of numbers has one, in which a comma counts as a decimal point.
bool has_numbers(std::span<std::string_view const> fields, TableKind const& kind) {
  for (std::size_t i = 0; i < std::min(fields.size(), kind.columns.size()); ++i) {
    if (!kind.columns[i].is_number) continue;
    std::string number(fields[i]);
    std::replace(number.begin(), number.end(), ',', '.');
    if (!is_number(number)) return false;
  }
  return true;
}

// Whether fields have what separates others: "a, b" is not divided by its blanks, and a line with tabs, which are not
// in quotes, not by its commas.
bool has_other_separator(std::string_view line, TableFields const& fields, std::string_view separator) {
  if (separator == kTab) return false;
  bool const has_tab = line.substr(0, line.find('"')).find('\t') != line.npos;
  return std::any_of(fields.all.begin(), fields.all.end(), [&](std::string_view field) {
    return separator.empty() ? field.size() > 1 && (field.ends_with(',') || field.ends_with(';'))
                             : has_tab && field.find('\t') != field.npos;
  });
}

}  // namespace

Division division_by(Separator const& separator, std::span<std::string_view const> lines, TableKind const& kind,
                     bool any_columns) {
  Division division{.separator = separator};
  // Names with quotes are common in text between tabs, and words with quotes in text between blanks.
  division.quotes = separator.quotes ||
                    (!lines.empty() && is_quoted(lines.front(), separator.text) &&
                     is_quoted(lines[lines.size() > 1 ? 1 : 0], separator.text)) ||
                    (separator.text.empty() && has_quoted_blanks(lines));
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> counts;  // of fields of a line: all, and with numbers
  std::size_t const least = least_of(kind);
  std::size_t const most = any_columns || kind.skips_rest || kind.takes_rest ? ~std::size_t{0} : kind.columns.size();
  TableFields fields;
  for (std::string_view const line : lines) {
    if (!divide(line, separator.text, division.quotes, fields).empty()) continue;
    division.rows.emplace_back(fields.all.begin(), fields.all.end());
    std::size_t const size = fields.all.size();
    if (size < least || size > most || has_other_separator(line, fields, separator.text)) continue;
    division.lines_fit += kind.takes_rest ? 1 : 0;
    auto& [all, with_numbers] = counts[size];
    with_numbers += has_numbers(fields.all, kind) ? 1 : 0;
    if (++all > counts[division.fields].first || division.fields == 0) division.fields = size;
  }
  division.lines_with_numbers = counts[division.fields].second;
  if (!kind.takes_rest && division.fields > 0) division.lines_fit = counts[division.fields].first;
  return division;
}

}  // namespace gpups::trainer
