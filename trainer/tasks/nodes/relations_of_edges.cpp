// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/nodes/relations_of_edges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "kernels/base/check.hpp"
#include "trainer/input/table_division.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kRelationsMost = 50;

bool is_whole(std::string_view field) {
  return !field.empty() && field.find_first_not_of("0123456789") == std::string_view::npos;
}

// Whether so many values in a column are few: one in 20 lines, or, of few lines, one in three and at most 4.
bool are_few(std::size_t values, std::size_t lines) {
  constexpr std::size_t kLinesOfEach = 20, kSmallMost = 4, kSmallLinesOfEach = 3;
  return values <= kRelationsMost &&
         (values * kLinesOfEach <= lines || (values <= kSmallMost && values * kSmallLinesOfEach <= lines));
}

bool is_sif(std::filesystem::path const& path) {
  std::filesystem::path name = path.filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  return name.extension() == ".sif" || name.extension() == ".SIF";
}

}  // namespace

void require_no_sif(std::filesystem::path const& path, TableSettings const& settings) {
  GPUPS_REQUIRE(
      !settings.columns.empty() || !is_sif(path),
      "{} is SIF by its name: a node, a relation and a node (the relation would be read as a node): write a line for "
      "each edge, and set data.columns to the columns of the nodes, [\"1\", \"3\"] of SIF, or read the file as triples "
      "(data.reader = \"triples\")",
      path.string());
}

void require_one_target(std::filesystem::path const& path, TableLayout const& layout) {
  constexpr std::size_t kFields = 3;
  GPUPS_REQUIRE(!is_sif(path) || layout.heading || layout.fields_max <= kFields,
                "{} is SIF by its name, and has lines of {} fields (each node after the second one of a line would be "
                "skipped): write a line for each edge",
                path.string(), layout.fields_max);
}

void require_no_relations(std::span<std::vector<std::string> const> rows, std::string_view path) {
  std::set<std::string_view> from, relations, to;
  for (auto const& row : rows) {
    if (row.size() != 3 || !is_whole(row[0]) || !is_whole(row[2]) || is_number(row[1])) return;
    from.insert(row[0]), to.insert(row[2]), relations.insert(row[1]);
    if (relations.size() > kRelationsMost) return;
  }
  if (!are_few(relations.size(), rows.size())) return;
  if (std::min(from.size(), to.size()) < 2 * relations.size()) return;
  GPUPS_REQUIRE(
      rows.empty(),
      "{} has {} different texts in column 2 of {} lines, such as '{}', between whole numbers (a relation would be "
      "read "
      "as a node, and the second node as a weight): data.columns = [\"1\", \"3\"] reads columns 1 and 3 as the nodes "
      "of an edge, [\"1\", \"2\", \"3\"] reads column 2 as a node, and data.reader = \"triples\" reads the relation "
      "too",
      path, relations.size(), rows.size(), rows.front()[1]);
}

}  // namespace gpups::trainer
