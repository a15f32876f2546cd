// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/separator_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/input/column_names.hpp"
#include "trainer/input/table_lists.hpp"
#include "trainer/input/table_notation.hpp"

namespace gpups::trainer {
namespace {

// What is divided, in all ways.
struct Trial {
  std::span<std::string_view const> lines;
  TableKind const& kind;  // takes_rest: lines are lists
  bool any_columns;
  std::vector<Division> divisions{};
};

bool is_by_blanks(Division const& division) { return division.separator.text.empty(); }
bool is_by_tabs(Division const& division) { return division.separator.text == "\t"; }
// By commas, semicolons or bars.
bool is_csv(Division const& division) { return division.separator.quotes; }

// Whether a text has a separator between other characters; "http://" has none.
bool has_within(std::string_view text, std::string_view separator) {
  std::size_t const at = text.find(separator);
  return at != text.npos && at > 0 && at + separator.size() < text.size() && !text.substr(at + 1).starts_with("//");
}

bool any_has_within(std::span<std::string const> names, std::string_view separator) {
  return std::any_of(names.begin(), names.end(), [&](auto const& name) { return has_within(name, separator); });
}

// Whether each comma ends a word, as in "Smith, John".
bool has_prose_commas(std::span<std::string_view const> lines) {
  return std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
    for (std::size_t at = line.find(','); at != line.npos; at = line.find(',', at + 1)) {
      if (!line.substr(at + 1).starts_with(' ')) return false;
    }
    return true;
  });
}

// Whether no line has a blank before the first separator, and one has two separators: "0,brown bread,milk".
bool divides_lists(Division const& division) {
  std::vector<TableRow> const& rows = division.rows;
  return std::none_of(rows.begin(), rows.end(), [](auto const& row) { return has_within(row.front(), " "); }) &&
         std::any_of(rows.begin(), rows.end(), [](auto const& row) { return row.size() > 2; });
}

// Returns whether, of two divisions that fit as many lines, the first (above 0) or the second (below 0) is better, or 0
// if nothing decides: "a;b;1,5" has a decimal comma, and "Smith, John;Doe, Jane" names with commas.
int compare(Division const& one, Division const& other, Trial const& trial) {
  if (trial.kind.takes_rest && is_by_blanks(one) && is_csv(other)) return divides_lists(other) ? -1 : 0;
  if (trial.kind.takes_rest && is_by_blanks(other) && is_csv(one)) return divides_lists(one) ? 1 : 0;
  if (!is_csv(one) || !is_csv(other)) return 0;
  auto const sign = [](auto a, auto b) { return a > b ? 1 : (a < b ? -1 : 0); };
  bool const counted = !trial.kind.takes_rest;  // lists have any number of fields
  if (counted && !trial.any_columns && one.lines_with_numbers != other.lines_with_numbers) {
    return sign(one.lines_with_numbers, other.lines_with_numbers);
  }
  if (counted && one.fields != other.fields) return sign(one.fields, other.fields);
  if (!has_prose_commas(trial.lines)) return 0;
  return sign(other.separator.text == ",", one.separator.text == ",");
}

// Returns the division that fits most lines, or null if none fits any.
Division const* find_best(Trial const& trial) {
  Division const* best = nullptr;
  for (Division const& division : trial.divisions) {
    if (division.lines_fit == 0) continue;
    bool wins = best == nullptr || division.lines_fit > best->lines_fit;
    if (!wins && division.lines_fit == best->lines_fit) {
      int const better = compare(division, *best, trial);
      // Lists have blanks rather than one comma.
      wins = better > 0 || (better == 0 && trial.kind.takes_rest && is_by_blanks(division) && is_csv(*best));
    }
    if (wins) best = &division;
  }
  return best;
}

// Throws Error if blanks divide a line that tabs divide, and into other fields: either may be meant. Tabs that give all
// lines the same number of fields, at least 3, are meant.
void require_tabs_or_blanks(Trial const& trial, Division const& by_tabs, Division const& by_blanks,
                            std::string_view path) {
  bool const is_table = by_tabs.fields > 2 && by_tabs.rows.size() == trial.lines.size() &&
                        std::all_of(by_tabs.rows.begin(), by_tabs.rows.end(),
                                    [&](TableRow const& row) { return row.size() == by_tabs.fields; });
  if (is_table || 2 * by_tabs.lines_fit < trial.lines.size()) return;
  TableFields one, other;
  for (std::string_view const line : trial.lines) {
    if (!divide(line, by_tabs.separator.text, by_tabs.quotes, one).empty()) continue;
    if (!divide(line, by_blanks.separator.text, by_blanks.quotes, other).empty()) continue;
    std::erase_if(one.all, [](auto field) { return field.empty(); });
    GPUPS_REQUIRE(one.all.size() < 2 || one.all == other.all,
                  "{} has lines with tabs and with blanks between them, such as '{}' (names with blanks would be "
                  "divided): set data.separator to \"tab\", or to \"blanks\" if names have none",
                  path, fmt::join(one.all, "' and '"));
  }
}

// Returns the first row with a separator within a name if it may separate names too, or null.
TableRow const* find_second(Division const& best, Separator const& other, Trial const& trial) {
  std::size_t in_first = 0, in_list = 0, in_any = 0, all = 0;
  TableRow const* shown = nullptr;
  for (TableRow const& row : best.rows) {
    if (row.size() < 2) continue;
    ++all;
    bool const first = has_within(row.front(), other.text);
    bool const later = any_has_within(std::span(row).subspan(1), other.text);
    in_first += first && (!later || (is_by_blanks(best) && other.text != ":")) ? 1 : 0;
    in_list += trial.kind.takes_rest && other.text != ":" && row.size() == 2 && later && !first ? 1 : 0;
    in_any += first || later ? 1 : 0;
    if (shown == nullptr && (first || later)) shown = &row;
  }
  // Tabs separate names with other signs, and "Smith, John;Acme" has a name with a comma.
  bool const in_names =
      is_by_tabs(best) ? other.text != ":" : other.text == "," && !is_by_blanks(best) && has_prose_commas(trial.lines);
  // Names between blanks rarely have commas: "Product 7,Product 18" is a list of two.
  bool const in_lists = trial.kind.takes_rest && is_by_blanks(best) && other.text != ":" && 2 * in_any > all;
  return 2 * (in_names ? 0 : in_first) > all || 2 * in_list > all || in_lists ? shown : nullptr;
}

// Whether blanks may be the separator of "0 4,8": they are within the first names only, and what follows is like lists.
bool hides_blanks(Division const& best, Division const& by_blanks) {
  std::vector<TableRow> const& rows = best.rows;
  bool const first_only = std::all_of(rows.begin(), rows.end(), [](TableRow const& row) {
    return has_within(row.front(), " ") && !any_has_within(std::span(row).subspan(1), " ");
  });
  if (!first_only) return false;
  std::vector<std::string_view> later;
  std::set<std::string_view> names;
  for (TableRow const& row : by_blanks.rows) {
    names.insert(row.begin(), row.end());
    later.insert(later.end(), row.begin() + 1, row.end());
  }
  return !find_list(later, names, best.separator.text).empty();
}

// Throws Error if another separator than that of the best division may be meant too: "user:item,item".
void require_one_separator(Division const& best, Trial const& trial, std::string_view path) {
  for (Division const& other : trial.divisions) {
    Separator const& separator = other.separator;
    if (separator.text == best.separator.text || is_by_tabs(other) || separator.text == "::" ||
        best.separator.text == "::")
      continue;
    bool const as_good = other.lines_fit == best.lines_fit && compare(best, other, trial) == 0;
    TableRow const* shown = nullptr;
    if (is_by_blanks(other)) {
      if (is_csv(best) && as_good && hides_blanks(best, other)) shown = &best.rows.front();
    } else {
      shown = find_second(best, separator, trial);
      if (shown == nullptr && as_good && is_csv(other) && (is_csv(best) || is_by_blanks(best))) {
        auto const row = std::find_if(best.rows.begin(), best.rows.end(),
                                      [&](auto const& names) { return any_has_within(names, separator.text); });
        if (row != best.rows.end()) shown = &*row;
      }
    }
    GPUPS_REQUIRE(shown == nullptr,
                  "{} has '{}' within names of lines that are {}, as in '{}' (it may separate names too, and one "
                  "separator is read): write one separator, or set data.separator to \"{}\" if names have '{}', or to "
                  "\"{}\" if it separates alone",
                  path, is_by_blanks(other) ? " " : separator.text, best.separator.adjective,
                  fmt::join(*shown, "' and '"), best.separator.name, is_by_blanks(other) ? " " : separator.text,
                  separator.name);
  }
}

// Returns a division with the columns that are read, if they are known; other columns may have any signs.
Division with_columns(Division division, TableSettings const& settings, TableKind const& kind) {
  if (division.rows.empty()) return division;
  std::vector<std::size_t> const places = used_columns(settings, kind, division.rows.front());
  if (places.empty()) return division;
  for (TableRow& row : division.rows) {
    TableRow used;
    for (std::size_t const place : places) {
      if (place < row.size()) used.push_back(row[place]);
    }
    row = std::move(used);
  }
  std::erase_if(division.rows, [](TableRow const& row) { return row.empty(); });
  return division;
}

}  // namespace

Division best_division(std::span<std::string_view const> lines, TableSettings const& settings, TableKind const& kind,
                       std::string_view path) {
  require_no_n_triples(lines, path);
  bool const any_columns = !settings.columns.empty(), names = !kind.columns.front().is_number;
  if (settings.separator != "auto") return division_by(separator_of(settings.separator), lines, kind, any_columns);
  if (names) require_no_yaml(lines, path);
  if (names && least_of(kind) == 2) {
    require_no_attributes(lines, path);
    require_no_utilities(lines, path);
  }
  TableKind rows = kind;
  rows.takes_rest = kind.takes_rest && !any_columns;
  Trial trial{.lines = lines, .kind = rows, .any_columns = any_columns};
  auto const divide_all = [&](bool any_size) {
    trial.divisions.clear();
    for (Separator const& separator : separators()) {
      trial.divisions.push_back(division_by(separator, lines, rows, any_size));
    }
    return find_best(trial);
  };
  Division const* best = divide_all(any_columns);
  if (best == nullptr) best = divide_all(true);
  // What divides all lines into as many fields, more than are read, wins over blanks of a heading: "Unnamed: 0,a,b,c".
  if (best != nullptr && 2 * best->lines_fit < lines.size()) {
    best = divide_all(true);
    if (is_by_blanks(*best) || best->lines_fit < lines.size()) best = divide_all(any_columns);
  }
  Division usual;
  if (best == nullptr || 2 * best->lines_fit < lines.size()) {
    usual = division_by(separator_of(kind.separator), lines, rows, true);
    best = &usual;
  }
  Division result = *best, used = with_columns(*best, settings, rows);
  if (names) {
    auto const by = [&](auto is) { return std::find_if(trial.divisions.begin(), trial.divisions.end(), is); };
    if (rows.takes_rest) require_tabs_or_blanks(trial, *by(is_by_tabs), *by(is_by_blanks), path);
    require_one_separator(used, trial, path);
  }
  result.notice = require_plain_names(used, lines, kind, rows.takes_rest, path);
  return result;
}

}  // namespace gpups::trainer
