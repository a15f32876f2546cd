// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/comment_heading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/input/column_names.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/input/table_division.hpp"

namespace gpups::trainer {
namespace {

// Columns that a line may have beside those of the reader.
constexpr TableColumn kOtherColumn{.is = "other", .headings = "time timestamp date rating score weight value label id"};

// Returns the last comment before the first line of data.
std::string_view last_comment(std::string_view text, TableSettings const& settings, TableKind const& kind) {
  std::string_view comment;
  while (!text.empty()) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (trim_blanks(line).empty()) continue;
    if (!is_comment(line, settings, kind, false)) break;
    comment = line;
  }
  return comment;
}

// Returns the names of the columns, one for each field, or nothing if the comment has other words.
TableRow names_in(std::string_view comment, std::size_t fields, TableKind const& kind) {
  auto const is_usual = [&](std::string const& name) {
    return is_called(name, kOtherColumn) || std::any_of(kind.columns.begin(), kind.columns.end(),
                                                        [&](auto const& column) { return is_called(name, column); });
  };
  TableFields names;
  for (Separator const& separator : separators()) {
    if (!divide(comment, separator.text, separator.quotes, names).empty() || names.all.size() != fields) continue;
    TableRow const row(names.all.begin(), names.all.end());
    if (std::all_of(row.begin(), row.end(), is_usual)) return row;
  }
  return {};
}

}  // namespace

std::string require_order_of_comment(std::string_view text, std::size_t fields, TableLayout const& layout,
                                     TableSettings const& settings, TableKind const& kind, std::string_view path) {
  if (layout.heading) return {};
  std::string_view comment = last_comment(text, settings, kind);
  std::string_view const sign = settings.comment == "auto" ? comment.substr(0, 1) : settings.comment;
  comment.remove_prefix(std::min(comment.find_first_not_of(sign), comment.size()));
  TableRow const names = names_in(trim_blanks(comment), fields, kind);
  std::vector<std::size_t> const places = places_by_name(names, kind);
  if (!has_required_names(places, kind)) return {};
  bool differs = false;
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < places.size() && places[i] != kNoColumn; ++i) {
    differs = differs || (i < layout.columns.size() && layout.columns[i] != places[i]);
    numbers.push_back(fmt::format("\"{}\"", places[i] + 1));
  }
  if (!differs) return {};
  std::string const what = fmt::format(
      "has a comment above the data, '{}', that names the columns in another order than", fmt::join(names, "', '"));
  GPUPS_REQUIRE(!settings.columns.empty(),
                "{} {} they are read (one would be taken for the other): set data.columns to [{}], or remove '{}' "
                "before the names, or the comment if it is wrong",
                path, what, fmt::join(numbers, ", "), sign);
  return what + " data.columns";
}

}  // namespace gpups::trainer
