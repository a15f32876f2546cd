// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/nodes/edge_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "trainer/base/finite_number.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kWeightsMin = 3;  // distinct
constexpr std::size_t kManyNodes = 32;  // of fewer, weights and nodes may be alike
constexpr double kEqualExpected = 6;    // lines; from which on none is no chance

// A column of the lines that have a weight.
struct NamesOfColumn {
  std::map<std::string_view, double> counts{};
  std::vector<double> numbers{};

  void add(std::string_view name) {
    ++counts[name];
    if (auto const number = finite_number(name)) numbers.push_back(*number);
  }
  // REQUIRES: some names are numbers.
  double median() {
    auto const middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
    std::nth_element(numbers.begin(), middle, numbers.end());
    return *middle;
  }
  // The names that both columns have, as a fraction of those that one of them has.
  double shared(NamesOfColumn const& other) const {
    auto const both = std::count_if(counts.begin(), counts.end(),
                                    [&](auto const& name) { return other.counts.contains(name.first); });
    auto const all = counts.size() + other.counts.size() - static_cast<std::size_t>(both);
    return static_cast<double>(both) / static_cast<double>(all);
  }
  // The lines in which both columns would have the same name by chance.
  double expected_equal(NamesOfColumn const& other, double lines) const {
    double sum = 0;
    for (auto const& [name, count] : counts) {
      auto const found = other.counts.find(name);
      if (found != other.counts.end()) sum += count * found->second / lines;
    }
    return sum;
  }
};

// Whether two columns have about as many names, and numbers of about the same size.
bool are_alike(NamesOfColumn& weights, NamesOfColumn& names) {
  constexpr std::size_t kTimesMost = 2;
  constexpr double kMedianTimesMost = 4;
  std::size_t const a = weights.counts.size(), b = names.counts.size();
  if (a > kTimesMost * b || b > kTimesMost * a || names.numbers.empty()) return false;
  double const of_weights = weights.median(), of_names = names.median();
  return of_weights * kMedianTimesMost >= of_names && of_names * kMedianTimesMost >= of_weights;
}

// Whether the weights of lines are no node of the same line, as other nodes are none: `equal` lines have such a weight,
// and by chance `expected` would.
bool differ(std::size_t equal, double expected, std::size_t nodes) {
  bool const tells = expected >= kEqualExpected || nodes < kManyNodes;
  return !tells || 4 * static_cast<double>(equal) <= expected;
}

// Whether the weights have the names of a column of nodes, and the other column of nodes has others: it may be a count
// or a time. Unlike differ(), this also tells if some edges lead from a node to itself.
bool has_names_of(NamesOfColumn const& weights, NamesOfColumn const& column, NamesOfColumn const& other) {
  constexpr std::size_t kNamesMin = 10;
  constexpr double kNearlyAll = .8;
  return weights.counts.size() >= kNamesMin && weights.shared(column) >= kNearlyAll && 2 * other.shared(column) <= 1;
}

}  // namespace

void say_weights_that_are_nodes(std::span<std::vector<std::string> const> rows, Dictionary const& nodes,
                                std::string_view path, std::vector<std::string>& notices) {
  NamesOfColumn from, to, weights;
  std::size_t lines = 0, named = 0, equal_from = 0, equal_to = 0;
  std::string_view shown;
  for (auto const& row : rows) {
    if (row.size() != 3 || !finite_number(row[2])) continue;
    ++lines;
    from.add(row[0]), to.add(row[1]), weights.add(row[2]);
    equal_from += row[2] == row[0] ? 1 : 0;
    equal_to += row[2] == row[1] ? 1 : 0;
    if (!nodes.find(row[2])) continue;
    if (named++ == 0 || row[2] < shown) shown = row[2];
  }
  if (weights.counts.size() < kWeightsMin || 2 * named < lines) return;
  auto const are_nodes_like = [&](NamesOfColumn& column, std::size_t equal) {
    return are_alike(weights, column) &&
           differ(equal, weights.expected_equal(column, static_cast<double>(lines)), nodes.size());
  };
  if (!are_nodes_like(to, equal_to) && !are_nodes_like(from, equal_from) && !has_names_of(weights, to, from) &&
      !has_names_of(weights, from, to)) {
    return;
  }
  notices.push_back(
      fmt::format("{} of the first {} weights of {} are names of nodes, such as {}: if a line is a node and its "
                  "neighbours, write a "
                  "line for each edge; if other columns have the nodes, data.columns = [\"2\", \"3\"] names them",
                  named, lines, path, shown));
}

void say_weights_that_count(std::span<std::vector<std::string> const> rows, std::string_view path,
                            std::vector<std::string>& notices) {
  constexpr std::size_t kLinesMin = 5;
  std::optional<double> last;
  for (auto const& row : rows) {
    auto const weight = row.size() == 3 ? finite_number(row[2]) : std::nullopt;
    if (!weight || (last && *weight != *last + 1)) return;
    last = weight;
  }
  if (rows.size() < kLinesMin) return;
  notices.push_back(
      fmt::format("the weights of {} count its lines: if they are numbers of edges, set data.columns to "
                  "[\"1\", \"2\"], so that all edges have the same weight",
                  path));
}

void say_nodes_that_are_weights(std::span<std::vector<std::string> const> rows, std::uint64_t names,
                                std::string_view path, std::vector<std::string>& notices) {
  constexpr std::size_t kRowsMin = 3;
  auto const is_fraction = [](std::string const& name) {
    auto const number = finite_number(name);
    return number && *number != std::floor(*number);
  };
  std::size_t fractions = 0;
  std::string const* shown = nullptr;
  for (auto const& row : rows) {
    if (row.size() != 2 || !finite_number(row[1]) || is_fraction(row[0])) return;
    if (is_fraction(row[1]) && fractions++ == 0) shown = &row[1];
  }
  if (rows.size() >= kRowsMin && names >= kRowsMin && fractions == 0) {
    notices.push_back(fmt::format(
        "{} has {} between lines with numbers, which are read as nodes: if they are nodes (as in the format "
        "LGL), write both nodes of an edge before its weight",
        path, with_count(names, "comment of one name", "comments of one name")));
  }
  if (rows.size() < kRowsMin || 2 * fractions <= rows.size()) return;
  notices.push_back(
      fmt::format("the second column of {} has decimal fractions, such as {}, which are read as nodes: if they are "
                  "weights, write both nodes of an edge before its weight (in the format LGL, the first node is in a "
                  "line with '#' above)",
                  path, *shown));
}

void say_first_nodes_that_number_rows(std::span<std::vector<std::string> const> rows, std::string_view path,
                                      std::vector<std::string>& notices) {
  constexpr std::size_t kRowsMin = 20;
  auto const is_whole = [](std::string const& name) {
    auto const number = finite_number(name);
    return number && *number == std::floor(*number);
  };
  std::set<std::string_view> first, second;
  for (auto const& row : rows) {
    if (row.size() != 3 || !is_whole(row[0]) || !is_whole(row[2])) return;
    if (!first.insert(row[0]).second) return;
    second.insert(row[1]);
  }
  if (rows.size() < kRowsMin || second.size() == rows.size()) return;
  notices.push_back(
      fmt::format("the first column of {} has another number in each line, such as {}, and is read as nodes: if it "
                  "numbers the lines, and other columns have the nodes, data.columns = [\"2\", \"3\"] names them",
                  path, rows.front()[0]));
}

}  // namespace gpups::trainer
