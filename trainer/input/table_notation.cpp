// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/table_notation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "kernels/base/check.hpp"
#include "trainer/input/line_reader.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kShownBytes = 80;
constexpr std::string_view kBrackets[] = {"()", "[]", "{}"};

// Whether most elements are so. Sets `shown` to the first of them.
template <class All, class Is>
bool most_are(All const& all, Is is, typename All::value_type const*& shown) {
  std::size_t found = 0;
  for (auto const& one : all) {
    if (!is(one)) continue;
    if (found++ == 0) shown = &one;
  }
  return 2 * found > all.size();
}

std::string shown_row(TableRow const& row) { return fmt::format("'{}'", fmt::join(row, "' and '")); }

bool is_n_triple(std::string_view line) {
  line = trim_blanks(line);
  return (line.starts_with('<') || line.starts_with("_:")) &&
         (line.ends_with(" .") || line.ends_with("\t.") || line.ends_with(">.") || line.ends_with("\"."));
}

// Whether a line ends with a dict of Python that is not all of it.
bool has_attributes(std::string_view line) {
  line = trim_blanks(line);
  std::size_t const at = line.find('{', 1);
  if (line.starts_with('{') || !line.ends_with('}') || at == line.npos || at + 1 == line.size()) return false;
  return std::string_view(" \t,;").find(line[at - 1]) != line.npos &&
         std::string_view("'\"}").find(line[at + 1]) != line.npos;
}

// Whether a line is an element of a YAML list or of a mapping in it: "- user: u1", "  item: i7".
bool is_yaml(std::string_view line) {
  bool const is_element = trim_blanks(line).starts_with("- ");
  if (!is_element && !line.starts_with(' ')) return false;
  line = trim_blanks(trim_blanks(line).substr(is_element ? 2 : 0));
  std::size_t const end = line.find(':');
  auto const is_key = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return end != line.npos && end > 0 && (end + 1 == line.size() || line[end + 1] == ' ') &&
         std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(end), is_key);
}

// Whether a line is some items, a number, and as many numbers, between colons.
bool has_utilities(std::string_view line) {
  std::size_t const first = line.find(':'), last = line.rfind(':');
  if (first == line.npos || last == first) return false;
  std::vector<std::string_view> items, utilities;
  split_at_blanks(line.substr(0, first), items);
  split_at_blanks(line.substr(last + 1), utilities);
  return !items.empty() && items.size() == utilities.size() && is_number(line.substr(first + 1, last - first - 1)) &&
         std::all_of(items.begin(), items.end(), is_number) &&
         std::all_of(utilities.begin(), utilities.end(), is_number);
}

// Whether a text has more of the first of two brackets than of the second, or, if opens is false, fewer.
bool is_open(std::string_view text, std::string_view brackets, bool opens) {
  auto const first = std::count(text.begin(), text.end(), brackets[0]);
  auto const second = std::count(text.begin(), text.end(), brackets[1]);
  return opens ? first > second : second > first;
}

// Throws Error if brackets are around the names of most rows: "(a, b)", "r(a, b).", "(a, b),3".
void require_no_brackets(Division const& division, std::string_view path) {
  for (std::string_view const brackets : kBrackets) {
    TableRow const* shown = nullptr;
    auto const encloses = [&](TableRow const& row) {
      return row.size() > 1 && is_open(row.front(), brackets, true) &&
             std::any_of(row.begin() + 1, row.end(),
                         [&](std::string_view field) { return is_open(field, brackets, false); });
    };
    GPUPS_REQUIRE(
        !most_are(division.rows, encloses, shown),
        "{} has brackets around the names of a line, as in {} (they would be parts of names): remove '{}' and "
        "'{}', or set data.separator to \"{}\" if names have them",
        path, shown_row(*shown), brackets[0], brackets[1], division.separator.name);
  }
}

// Throws Error if the first or the last field of most rows is a list: "['i', 'j']", "frozenset({'i', 'j'})".
void require_no_lists_in_fields(Division const& division, std::string_view path) {
  for (std::string_view const brackets : kBrackets) {
    TableRow const* shown = nullptr;
    bool several = false;
    auto const is_enclosed = [&](std::string_view field) {
      if (field.starts_with("frozenset(")) field.remove_prefix(std::string_view("frozenset").size());
      bool const found = field.size() > 2 && field.front() == brackets[0] && field.back() == brackets[1];
      several = several || (found && field.find_first_of(",'\"") != field.npos);
      return found;
    };
    auto const is_list = [&](TableRow const& row) {
      return row.size() > 1 && (is_enclosed(row.front()) || is_enclosed(row.back()));
    };
    bool const most = most_are(division.rows, is_list, shown);
    GPUPS_REQUIRE(!most || !several,
                  "{} has lists in brackets, as in {} (each would be one name): write their names as fields of the "
                  "line, or as a line each, or set data.separator to \"{}\" if names have brackets",
                  path, shown_row(*shown), division.separator.name);
  }
}

bool is_punctuation(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return std::ispunct(static_cast<unsigned char>(c)); });
}

// Whether the last name of a row ends with '.' or ';', as statements of Turtle and of Graphviz do.
bool ends_statement(TableRow const& row) {
  std::string_view const last = row.back();
  return row.size() > 1 && (last.ends_with('.') || last.ends_with(';')) && !is_number(last);
}

// Whether it does so after a blank.
bool ends_with_sign(TableRow const& row) {
  std::string_view const last = row.back();
  return ends_statement(row) && (last.size() == 1 || last[last.size() - 2] == ' ');
}

// Whether a name, before the last one, is an arrow: "a ->", "-r->".
bool has_arrow(TableRow const& row) {
  return row.size() > 1 && std::any_of(row.begin(), row.end() - 1,
                                       [](std::string_view name) { return name.size() > 1 && name.ends_with("->"); });
}

// Throws Error if the names of most rows have signs: "a: b", "a -> b", "a -r-> b", "a b .".
void require_no_signs(Division const& division, TableKind const& kind, std::string_view path) {
  TableRow const* shown = nullptr;
  std::vector<TableRow> const& rows = division.rows;
  auto const has_sign_after_first = [](TableRow const& row) {
    std::string_view const first = row.front();
    return has_arrow(row) || (row.size() > 1 && first.size() > 1 &&
                              std::string_view(":;,|=").find(first.back()) != std::string_view::npos);
  };
  auto const is_sign = [](TableRow const& row) { return row.size() > 2 && is_punctuation(row[1]); };
  bool const after_first = most_are(rows, has_sign_after_first, shown);
  bool const as_second = !after_first && least_of(kind) == 2 && rows.size() > 1 && most_are(rows, is_sign, shown) &&
                         std::all_of(rows.begin(), rows.end(),
                                     [&](TableRow const& row) { return row.size() > 1 && row[1] == (*shown)[1]; });
  GPUPS_REQUIRE(!after_first && !as_second,
                "{} has a sign after the first name of a line, as in {} (it would be read as a name, or as a part of "
                "one): write nothing but the separator between names, or set data.separator to \"{}\" if it is a name",
                path, shown_row(*shown), division.separator.name);
  // All lines, of which the first may be a heading.
  auto const statements = std::count_if(rows.begin(), rows.end(), ends_statement);
  bool const all_end = statements > 1 && statements + 1 >= std::ssize(rows) && ends_statement(rows.back());
  if (all_end) shown = &rows.back();
  GPUPS_REQUIRE(!all_end && !most_are(rows, ends_with_sign, shown),
                "{} has a sign after the last name of a line, as in {} (it would be a part of the name): remove it, or "
                "set data.separator to \"{}\" if it is a part of names",
                path, shown_row(*shown), division.separator.name);
}

// The parts of fields such as "i:5", before and after the sign.
struct Valued {
  std::set<std::string_view> names, values;
  bool all_numbers = true;    // the names are
  bool any_fraction = false;  // a value has a point
};

// Adds the parts of all fields after the first one. Returns whether all of them, but not the first, have a number after
// the sign.
bool add_valued(TableRow const& row, char sign, Valued& valued) {
  auto const is_valued = [sign](std::string_view field) {
    std::size_t const at = field.rfind(sign);
    return at != field.npos && at > 0 && is_number(field.substr(at + 1));
  };
  if (row.size() < 2 || is_valued(row.front()) || !std::all_of(row.begin() + 1, row.end(), is_valued)) return false;
  for (std::size_t i = 1; i < row.size(); ++i) {
    std::string_view const field = row[i];
    std::size_t const at = field.rfind(sign);
    std::string_view const name = field.substr(0, at), value = field.substr(at + 1);
    valued.names.insert(name);
    valued.values.insert(value);
    valued.all_numbers = valued.all_numbers && is_number(name);
    valued.any_fraction = valued.any_fraction || value.find('.') != value.npos;
  }
  return true;
}

// Throws Error if items of most rows have values: "u i:5 j:2". Returns a notice if they may have some: names such as
// "book:7", with as few words before the sign, are usual. signs: those before a value. names: what they are, for
// messages.
std::string require_no_values(Division const& division, std::string_view signs, std::string_view names,
                              std::string_view path) {
  for (char const sign : signs) {
    Valued valued;
    TableRow const* shown = nullptr;
    bool const most = most_are(
        division.rows, [&](TableRow const& row) { return add_valued(row, sign, valued); }, shown);
    if (!most || valued.names.size() < 2) continue;
    bool const sure = valued.all_numbers || valued.any_fraction || valued.names.size() >= valued.values.size();
    std::string const what =
        fmt::format("has '{}' and a number after the {} of a line, as in {}", sign, names, shown_row(*shown));
    GPUPS_REQUIRE(
        !sure,
        "{} {} (the numbers would be parts of names): remove them, or set data.separator to \"{}\" if they are "
        "parts of names",
        path, what, division.separator.name);
    return what + ": it is read as part of a name";
  }
  return {};
}

// Returns a notice if a blank may separate the first name from the others: "u a, b, c".
std::string blanks_within_first(Division const& division, std::span<std::string_view const> lines) {
  std::string const separator(division.separator.text);
  std::string_view const* line = nullptr;
  TableRow const* shown = nullptr;
  if (separator.empty() || separator == "\t") return {};
  auto const is_spaced = [&](std::string_view text) { return text.find(separator + " ") != text.npos; };
  auto const has_blank = [](std::string const& field) { return field.find_first_of(kBlanks) != field.npos; };
  auto const in_first = [&](TableRow const& row) { return row.size() > 1 && has_blank(row.front()); };
  if (!most_are(lines, is_spaced, line)) return {};
  if (!most_are(division.rows, in_first, shown)) return {};
  return fmt::format(
      "has a blank within the first name of most lines, as in {}: if it separates "
      "names too, write one separator",
      shown_row(*shown));
}

}  // namespace

void require_no_n_triples(std::span<std::string_view const> lines, std::string_view path) {
  std::string_view const* shown = nullptr;
  GPUPS_REQUIRE(!most_are(lines, is_n_triple, shown),
                "{} has lines of N-Triples, such as '{}' (their last '.' would be part of a name): write subject, "
                "relation and object between tabs, for example with sed -E "
                "'s/^(\\S+)\\s+(\\S+)\\s+(.*\\S)\\s*\\.\\s*$/\\1\\t\\2\\t\\3/'",
                path, shown->substr(0, kShownBytes));
}

void require_no_yaml(std::span<std::string_view const> lines, std::string_view path) {
  auto const element =
      std::find_if(lines.begin(), lines.end(), [](auto line) { return trim_blanks(line).starts_with("- "); });
  GPUPS_REQUIRE(element == lines.end() || !std::all_of(lines.begin(), lines.end(), is_yaml),
                "{} has lines of YAML, such as '{}' (its signs and keys would be names): write the values of an "
                "element in a line, with one separator between them",
                path, element->substr(0, kShownBytes));
}

void require_no_utilities(std::span<std::string_view const> lines, std::string_view path) {
  std::string_view const* shown = nullptr;
  bool const most = most_are(lines, has_utilities, shown);
  bool const several = most && trim_blanks(shown->substr(0, shown->find(':'))).find(' ') != shown->npos;
  GPUPS_REQUIRE(!several,
                "{} has lines of items, a sum and utilities between colons, such as '{}', as SPMF writes them (the "
                "numbers would be names): write a user and the items, without the numbers after ':'",
                path, shown->substr(0, kShownBytes));
}

void require_no_attributes(std::span<std::string_view const> lines, std::string_view path) {
  std::string_view const* shown = nullptr;
  GPUPS_REQUIRE(!most_are(lines, has_attributes, shown),
                "{} has attributes in braces after names, as in '{}' (write_edgelist() of networkx writes them so, and "
                "they are not read): write the file with data=False, or with data=[\"weight\"]",
                path, shown->substr(0, kShownBytes));
}

std::string require_plain_names(Division const& division, std::span<std::string_view const> lines,
                                TableKind const& kind, bool lists, std::string_view path) {
  if (kind.columns.front().is_number) return {};  // what is around a number makes a line bad
  require_no_brackets(division, path);
  require_no_signs(division, kind, path);
  if (least_of(kind) != 2) return {};
  require_no_lists_in_fields(division, path);
  if (kind.is_square) return require_no_values(division, ":=", "nodes", path);
  if (!lists) return {};
  std::string notice = require_no_values(division, ":=|;,", "items", path);
  return notice.empty() ? blanks_within_first(division, lines) : notice;
}

}  // namespace gpups::trainer
