// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/table_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <span>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/input/column_names.hpp"
#include "trainer/input/separator_choice.hpp"
#include "trainer/input/table_division.hpp"
#include "trainer/input/table_lists.hpp"

namespace gpups::trainer {
namespace {

// Whether the first field of a row is the name of an index, or has none, and the others have names.
bool is_index_heading(TableRow const& row) {
  return row.size() > 2 && is_index_name(row.front()) &&
         std::none_of(row.begin() + 1, row.end(), [](std::string const& name) { return name.empty(); });
}

// Whether the first row is a heading: it has the names of the columns, or no numbers, where all other rows have numbers
// in all columns that are needed, or in one that must be a number.
bool has_heading(std::vector<TableRow> const& rows, TableKind const& kind) {
  if (rows.empty()) return false;
  TableRow const& first = rows.front();
  if (has_required_names(places_by_name(first, kind), kind)) return true;
  // The column of row names has none: pandas and R write so.
  if (!kind.columns.front().is_number && rows.size() > 1 && is_index_heading(first) &&
      std::none_of(rows.begin() + 1, rows.end(), [](TableRow const& row) { return row.front().empty(); })) {
    return true;
  }
  if (std::any_of(first.begin(), first.end(), [](std::string const& f) { return is_number(f); })) return false;
  bool const letters = std::any_of(first.begin(), first.end(), [](std::string const& f) {
    return !f.empty() && std::isalpha(static_cast<unsigned char>(f.front())) != 0;
  });
  if (!letters) return false;
  if (kind.columns.front().is_number) return true;  // no row of data begins so
  auto const is_above_numbers = [&](std::size_t column) {
    return rows.size() > 1 && std::all_of(rows.begin() + 1, rows.end(), [column](TableRow const& row) {
             return column < row.size() && is_number(row[column]);
           });
  };
  bool all = true;
  for (std::size_t i = 0; i < kind.columns.size(); ++i) {
    if (kind.columns[i].is_number && is_above_numbers(i)) return true;
    all = all && (kind.columns[i].may_lack || is_above_numbers(i));
  }
  return all;
}

// Returns the place of a column that the settings name.
std::size_t place_of(std::string const& column, TableRow const* heading, std::string_view path) {
  std::size_t number = 0;
  auto const [stop, error] = std::from_chars(column.data(), column.data() + column.size(), number);
  if (error == std::errc{} && stop == column.data() + column.size()) {
    GPUPS_REQUIRE(number > 0 && number < 100'000, "data.columns has {} (columns are numbered from 1): correct it",
                  column);
    return number - 1;
  }
  GPUPS_REQUIRE(heading != nullptr,
                "{} has no heading, but data.columns has the name \"{}\" (it names no column): use numbers, from 1, or "
                "set data.heading to \"yes\"",
                path, column);
  auto const find = [&](auto same) {
    return static_cast<std::size_t>(std::find_if(heading->begin(), heading->end(), same) - heading->begin());
  };
  std::size_t place = find([&](std::string const& name) { return name == column; });
  if (place == heading->size())
    place = find([&](std::string const& name) { return plain_name(name) == plain_name(column); });
  GPUPS_REQUIRE(
      place < heading->size(),
      "{} has no column \"{}\" (data.columns names it, and the first line is read as the heading): use one of "
      "{}, or numbers, from 1",
      path, column, fmt::join(*heading, ", "));
  return place;
}

// The columns that the settings name.
void set_named_columns(TableSettings const& settings, TableKind const& kind, TableRow const* heading,
                       std::string_view path, TableLayout& layout) {
  std::size_t const least = least_of(kind), count = settings.columns.size();
  GPUPS_REQUIRE(
      count >= least && count <= kind.columns.size(),
      "data.columns has {} (the columns of {}, for each its name or its number from 1): name {}", count, path,
      least == kind.columns.size() ? fmt::format("{}", least) : fmt::format("{} or {}", least, kind.columns.size()));
  for (std::string name : settings.columns) {
    bool const last = layout.columns.size() + 1 == kind.columns.size();
    if (kind.takes_rest && last && name.size() > 1 && name.ends_with('-') &&
        std::isdigit(static_cast<unsigned char>(name.front())) != 0) {
      name.pop_back();
      layout.takes_rest = true;
    }
    std::size_t const place = place_of(name, heading, path);
    GPUPS_REQUIRE(std::find(layout.columns.begin(), layout.columns.end(), place) == layout.columns.end(),
                  "data.columns has {} twice (each column has one meaning): correct it", name);
    layout.columns.push_back(place);
  }
}

// Returns a message if data.columns gives a column a meaning that its heading contradicts, or nothing.
std::string contradiction(TableLayout const& layout, TableKind const& kind, TableRow const& heading) {
  for (std::size_t i = 0; i < layout.columns.size(); ++i) {
    std::size_t const place = layout.columns[i];
    if (place >= heading.size() || is_called(heading[place], kind.columns[i])) continue;
    if (std::any_of(kind.columns.begin(), kind.columns.end(),
                    [&](auto const& c) { return is_called(heading[place], c); })) {
      return fmt::format("data.columns reads column {}, which the heading calls '{}', as {}", place + 1, heading[place],
                         kind.columns[i].is);
    }
  }
  return {};
}

std::string all_of(TableKind const& kind) {
  std::vector<std::string> names;
  for (TableColumn const& column : kind.columns) {
    names.push_back(std::string(column.is) + (column.may_lack ? " (or none)" : ""));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns a value of data.columns with `count` columns, for messages.
std::string example_columns(std::size_t count) {
  constexpr std::size_t kShown = 4;
  std::string text = "[\"1\"";
  for (std::size_t number = 2; number <= std::min(count, kShown); ++number) text += fmt::format(", \"{}\"", number);
  if (count > kShown) text += fmt::format(", and so on to \"{}\"", count);
  return text + "]";
}

// A row, a column, a rating and a time are the most that files without names of columns have in common.
constexpr std::size_t kFieldsMax = 4;

// Returns the first names of a heading.
std::string shown_names(TableRow const& heading) {
  constexpr std::size_t kShown = 6;
  return fmt::format("{}{}", fmt::join(std::span(heading).first(std::min(heading.size(), kShown)), ", "),
                     heading.size() > kShown ? ", ..." : "");
}

// Throws Error if names of data.columns are found in the first line, and below it as values: it is no heading.
void require_names(std::vector<TableRow> const& rows, TableLayout const& layout, std::string_view path) {
  for (std::size_t const place : layout.columns) {
    if (place >= rows.front().size()) continue;
    std::string const& name = rows.front()[place];
    bool const is_value = std::any_of(rows.begin() + 1, rows.end(), [&](TableRow const& row) {
      return place < row.size() && row[place] == name && row != rows.front();
    });
    GPUPS_REQUIRE(
        !is_value || is_number(name),
        "{} has \"{}\", which data.columns names, in its first line and as a value in other lines (it seems to "
        "have no heading): use numbers, from 1, or set data.heading to \"yes\"",
        path, name);
  }
}

// The columns by the names of the heading, or else by their order from `first` on, after an index.
// fields: of the longest lines. usual_fields: of most lines.
void set_usual_columns(TableKind const& kind, TableRow const* heading, std::size_t first, std::size_t fields,
                       std::size_t usual_fields, std::string_view path, TableLayout& layout) {
  std::size_t const least = least_of(kind);
  if (heading != nullptr) {
    std::vector<std::size_t> const named = places_by_name(*heading, kind);
    if (has_required_names(named, kind)) {
      for (std::size_t const place : named) {
        if (place == kNoColumn) break;
        layout.columns.push_back(place);
      }
      return;
    }
    for (std::size_t i = 0; i < least; ++i) {
      // "Average Rating, My Rating": either may be meant.
      bool const may_be_later =
          named[i] == kNoColumn && i + 1 == least && kind.columns[i].is_number && first + least < heading->size() &&
          std::any_of(heading->begin() + static_cast<std::ptrdiff_t>(first + least), heading->end(),
                      [&](auto const& name) { return may_be_called(name, kind.columns[i]); });
      GPUPS_REQUIRE((named[i] == kNoColumn || named[i] == first + i) && !may_be_later,
                    "{} has the columns {} (which of them are {} cannot be told): name them with data.columns", path,
                    fmt::join(*heading, ", "), all_of(kind));
    }
  }
  bool const rest = kind.takes_rest && heading == nullptr;
  GPUPS_REQUIRE(!kind.skips_rest || usual_fields <= first + kFieldsMax,
                "{} has lines of {} fields{} (which of them are {} cannot be told): name the columns with "
                "data.columns, for example {}",
                path, usual_fields, heading == nullptr ? "" : fmt::format(", {}", shown_names(*heading)), all_of(kind),
                example_columns(least));
  GPUPS_REQUIRE(rest || kind.skips_rest || fields <= first + kind.columns.size(),
                "{} has lines of {} fields (which of them are {} cannot be told): name the columns with data.columns, "
                "for example {}",
                path, fields, all_of(kind), example_columns(least));
  layout.takes_rest = rest;
  for (std::size_t i = 0; i < kind.columns.size(); ++i) {
    // Without a heading, a line below the first ones may have a column that they lack.
    if (i >= least && first + i >= fields && (heading != nullptr || kind.skips_rest)) break;
    layout.columns.push_back(first + i);
  }
}

std::string what_was_found(Division const& division, TableLayout const& layout, TableKind const& kind,
                           TableRow const* heading, std::size_t fields) {
  std::vector<std::string> names;
  bool in_order = true;
  for (std::size_t i = 0; i < layout.columns.size(); ++i) {
    std::size_t const place = layout.columns[i];
    if (kind.columns[i].may_lack && place >= fields && i > 0) continue;
    in_order = in_order && place == i;
    bool const named = heading != nullptr && place < heading->size();
    names.push_back(named ? (*heading)[place] : fmt::format("{}", place + 1));
  }
  bool const usual = division.separator.name == kind.separator && heading == nullptr && in_order && !layout.quotes;
  if (usual) return {};
  return fmt::format("{}{}{}; columns {}{}", layout.divided,
                     layout.quotes && !division.separator.quotes ? ", with names in quotes" : "",
                     heading == nullptr ? "" : ", with a heading", fmt::join(names, ", "),
                     layout.takes_rest ? " and all after it" : "");
}

// Whether the first column has the row names that R writes: numbers in quotes that all differ, and no name in the
// heading.
bool has_row_names(std::span<std::string_view const> lines, std::vector<TableRow> const& rows, std::size_t fields) {
  if (rows.size() < 3 || rows.size() != lines.size() || fields != rows.front().size() + 1) return false;
  std::set<std::string_view> names;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    bool const named = lines[i].starts_with('"') && rows[i].size() == fields && is_number(rows[i].front());
    if (!named || !names.insert(rows[i].front()).second) return false;
  }
  return true;
}

// Returns a notice if a column of numbers, after an index, may be the last one of the reader, which the heading does
// not name, or nothing. index: number of columns that are one.
std::string unread_numbers(std::vector<TableRow> const& rows, std::size_t index, TableLayout const& layout,
                           TableKind const& kind) {
  TableColumn const& last = kind.columns.back();
  TableRow const& heading = rows.front();
  if (!last.may_lack || !last.is_number || layout.columns.size() == kind.columns.size() || rows.size() < 2) return {};
  for (std::size_t i = index; i < heading.size(); ++i) {
    bool const read = std::find(layout.columns.begin(), layout.columns.end(), i) != layout.columns.end();
    auto const has_number = [i](TableRow const& row) { return i < row.size() && is_number(row[i]); };
    if (read || heading[i].empty() || !std::all_of(rows.begin() + 1, rows.end(), has_number)) continue;
    return fmt::format(
        "has numbers in column {}, '{}', which is not read: data.columns = [\"{}\", \"{}\", \"{}\"] reads "
        "them as {}",
        i + 1, heading[i], layout.columns[0] + 1, layout.columns[1] + 1, i + 1, last.is);
  }
  return {};
}

TableLayout layout_of_lines(std::span<std::string_view const> lines, TableSettings const& settings,
                            TableKind const& kind, std::string_view path) {
  GPUPS_REQUIRE(
      !settings.separator.empty() && settings.separator.size() <= 16,
      "data.separator is \"{}\" (it is one of tab, comma, semicolon, bar, colon and blanks, or a short text): "
      "correct it",
      settings.separator);
  Division division = best_division(lines, settings, kind, path);
  // The next line would be read as the heading, or most lines have other fields.
  bool const fits = 2 * division.lines_fit >= lines.size();
  if (!fits || (division.separator.quotes && find_open_quote(lines) == 0)) require_closed_quotes(lines, path);
  bool const names = std::any_of(settings.columns.begin(), settings.columns.end(), [](std::string const& column) {
    return column.empty() || std::isdigit(static_cast<unsigned char>(column.front())) == 0;
  });
  std::vector<TableRow>& rows = division.rows;
  bool const heading =
      settings.heading == "yes" || (settings.heading == "auto" && !rows.empty() &&
                                    (names || has_heading(rows, kind) || has_row_names(lines, rows, division.fields)));
  if (heading && has_row_names(lines, rows, division.fields)) rows.front().insert(rows.front().begin(), "");
  GPUPS_REQUIRE(
      !heading || rows.empty() || rows.front().size() >= division.fields || (!names && !settings.columns.empty()),
      "{} has a heading of {} names above lines of {} fields (which columns they name cannot be told): correct "
      "the heading, or number the columns with data.columns",
      path, rows.front().size(), division.fields);
  TableRow const* const first = heading && !rows.empty() ? &rows.front() : nullptr;
  TableLayout layout{.separator = std::string(division.separator.text), .quotes = division.quotes, .heading = heading};
  layout.divided = division.separator.adjective.empty() ? fmt::format("separated by '{}'", layout.separator)
                                                        : std::string(division.separator.adjective);
  std::size_t fields = std::max(division.fields, first == nullptr ? 0 : first->size());
  if ((kind.skips_rest || !settings.columns.empty()) && first == nullptr) {  // columns that are skipped may lack
    for (TableRow const& row : rows) fields = std::max(fields, row.size());
  }
  std::size_t const index =
      first != nullptr && settings.columns.empty() ? index_columns(*first, std::span(rows).subspan(1), kind) : 0;
  if (settings.columns.empty()) {
    set_usual_columns(kind, first, index, fields, first == nullptr ? division.fields : fields, path, layout);
  } else {
    set_named_columns(settings, kind, first, path, layout);
    if (names && first != nullptr && settings.heading == "auto") require_names(rows, layout, path);
    if (!names && first != nullptr) layout.contradiction = contradiction(layout, kind, *first);
  }
  if (settings.separator == "auto" && !kind.columns.front().is_number) {
    require_no_lists(std::span(rows).subspan(first == nullptr ? 0 : 1), division.separator, layout, kind, path);
  }
  bool const any_number = layout.takes_rest || fields == 0;
  std::size_t const all = settings.columns.empty() && first == nullptr && !kind.skips_rest ? kind.columns.size() : 0;
  // Columns that the settings name and the first lines lack may be in later ones.
  std::size_t const named =
      first == nullptr ? *std::max_element(layout.columns.begin(), layout.columns.end()) + 1 : std::size_t{0};
  layout.fields_max = any_number ? kNoColumn : std::max({fields, all, named});
  if (first != nullptr) layout.names = *first;
  layout.says = what_was_found(division, layout, kind, first, fields);
  if (index > 0 && std::find(layout.columns.begin(), layout.columns.end(), 0) == layout.columns.end()) {
    layout.says += fmt::format("; the first column, {}, is an index and is left out",
                               first->front().empty() ? "without a name" : fmt::format("'{}'", first->front()));
  }
  layout.notice = std::move(division.notice);
  if (layout.notice.empty() && first != nullptr && settings.columns.empty()) {
    layout.notice = unread_numbers(rows, index, layout, kind);
  }
  return layout;
}

}  // namespace

void require_closed_quotes(std::span<std::string_view const> lines, std::string_view path) {
  constexpr std::size_t kShownBytes = 80;
  std::size_t const open = find_open_quote(lines);
  GPUPS_REQUIRE(open == lines.size(),
                "{} has a quoted field that goes on in the next line, as in '{}' (line breaks in fields are not read): "
                "replace them, for example with df.replace(r\"[\\r\\n]+\", \" \", regex=True) in pandas",
                path, lines[open].substr(0, kShownBytes));
}

TableLayout find_layout(std::span<std::string_view const> lines, TableSettings const& settings, TableKind const& kind,
                        std::string_view path) {
  try {
    return layout_of_lines(lines, settings, kind, path);
  } catch (Error const&) {
    require_closed_quotes(lines, path);  // it is more likely than what was found
    throw;
  }
}

bool SameColumns::is_reordered(TableLayout const& layout) const {
  std::size_t const both = std::min(first_.columns.size(), layout.columns.size());
  for (std::size_t i = 0; i < both; ++i) {
    std::size_t const here = layout.columns[i], there = first_.columns[i];
    if (here >= layout.names.size() || there >= first_.names.size()) continue;
    std::string const& name = first_.names[there];
    if (layout.names[here] == name) continue;
    if (std::find(layout.names.begin(), layout.names.end(), name) != layout.names.end()) return true;
  }
  return false;
}

void SameColumns::check(TableLayout const& layout, std::string_view path) {
  if (first_path_.empty()) {
    first_path_ = path;
    first_ = layout;
    return;
  }
  GPUPS_REQUIRE(layout.contradiction.empty() || first_.heading,
                "{}: {}, and {} has no heading (data.columns may be meant for files with other columns): correct "
                "data.columns, or the order of the "
                "columns",
                path, layout.contradiction, first_path_);
  std::size_t const both = std::min(first_.columns.size(), layout.columns.size());
  bool const same_places = std::equal(
      first_.columns.begin(), first_.columns.begin() + static_cast<std::ptrdiff_t>(both), layout.columns.begin());
  GPUPS_REQUIRE(first_.heading == layout.heading || same_places,
                "{} has {}, and {} has {} (their columns would be read in two ways): give all files a heading, or set "
                "data.columns to numbers",
                path, layout.heading ? "a heading" : "none", first_path_, first_.heading ? "a heading" : "none");
  GPUPS_REQUIRE(
      !is_reordered(layout),
      "{} has the columns {}, and {} has them in another order (they are read by their places): name them with "
      "data.columns",
      path, fmt::join(layout.names, ", "), first_path_);
}

}  // namespace gpups::trainer
