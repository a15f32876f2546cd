// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/table_lists.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/base/finite_number.hpp"
#include "trainer/input/line_reader.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kListBytes = 80;
constexpr std::size_t kLeastShare = 5;  // one of so many fields is no exception

// Calls add(part) for the parts of a text between separators, without blanks around them.
template <class Add>
void for_parts(std::string_view text, std::string_view separator, Add add) {
  while (true) {
    std::size_t const end = text.find(separator);
    add(trim_blanks(text.substr(0, end)));
    if (end == text.npos) return;
    text.remove_prefix(end + separator.size());
  }
}

// Whether a name is a number, or letters and digits: "7", "n4".
bool is_id(std::string_view name) {
  auto const is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  auto const is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return std::any_of(name.begin(), name.end(), is_digit) && std::all_of(name.begin(), name.end(), is_word);
}

}  // namespace

std::string_view find_list(std::span<std::string_view const> fields, std::set<std::string_view> const& names,
                           std::string_view separator) {
  std::size_t several = 0, like_lists = 0;
  std::string_view shown;
  for (std::string_view const field : fields) {
    if (field.find(separator) == field.npos) continue;
    ++several;
    bool ids = true, known = true;
    for_parts(field, separator, [&](std::string_view part) {
      bool const number = finite_number(part).has_value();
      ids = ids && (number || is_id(part));
      known = known && (names.contains(part) || (number && part.find('.') != part.npos));
    });
    if ((ids || known) && like_lists++ == 0) shown = field;
  }
  bool const most = 2 * like_lists > several && kLeastShare * several >= fields.size();
  return most ? shown.substr(0, kListBytes) : std::string_view{};
}

void require_no_lists(std::span<TableRow const> rows, Separator const& separator, TableLayout const& layout,
                      TableKind const& kind, std::string_view path) {
  std::vector<std::vector<std::string_view>> columns(layout.columns.size());
  std::set<std::string_view> names;
  for (TableRow const& row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::size_t const begin = layout.columns[i];
      bool const is_rest = layout.takes_rest && i + 1 == columns.size();
      std::size_t const end = std::min(is_rest ? row.size() : begin + 1, row.size());
      for (std::size_t place = begin; place < end && !kind.columns[i].is_number; ++place) {
        names.insert(row[place]);
        columns[i].push_back(row[place]);
      }
    }
  }
  for (auto const& column : columns) {
    for (std::string_view const inner : {" ", ",", ";", "|", " / "}) {
      std::string_view const list = find_list(column, names, inner);
      GPUPS_REQUIRE(list.empty(),
                    "{} is {} and has names such as '{}' (it may be a list, and would be one name): write {}a line for "
                    "each name of a list, or set data.separator to \"{}\" if it is one name",
                    path, layout.divided, list, kind.is_square ? "one separator between all columns, or " : "",
                    separator.name);
    }
  }
}

}  // namespace gpups::trainer
