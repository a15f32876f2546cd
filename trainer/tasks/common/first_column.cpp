// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/first_column.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "trainer/input/column_names.hpp"

namespace gpups::trainer {

void say_odd_first_column(std::span<TableRow const> rows, TableLayout const& layout, TableKind const& kind,
                          std::string_view path, std::vector<std::string>& notices) {
  constexpr std::size_t kRowsMin = 3;
  std::size_t const least = least_of(kind);
  TableColumn const& first = kind.columns.front();
  bool const named = layout.heading && !layout.names.empty() && is_called(layout.names.front(), first);
  if (named || layout.columns.empty() || layout.columns.front() != 0) return;
  if (rows.size() < kRowsMin || rows.front().size() <= least) return;
  bool const same = kind.is_square && std::all_of(rows.begin(), rows.end(), [&](TableRow const& row) {
                      return row.front() == rows.front().front();
                    });
  if (!same && !counts_rows(rows)) return;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < least; ++i) others.push_back(fmt::format("\"{}\"", i + 2));
  notices.push_back(
      fmt::format("the first column of {} {}, and is read as a {}: if it is none, data.columns = [{}] leaves it out",
                  path, same ? "is the same in each line" : "counts the lines", kind.is_square ? "node" : first.is,
                  fmt::join(others, ", ")));
}

}  // namespace gpups::trainer
