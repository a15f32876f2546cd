// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/matrix_market.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/base/finite_number.hpp"

namespace gpups::trainer {
namespace {

constexpr std::string_view kMatrixMarket = "%%MatrixMarket";

bool read_count(std::string_view field, std::uint64_t& count) {
  auto const [stop, error] = std::from_chars(field.data(), field.data() + field.size(), count);
  return error == std::errc{} && stop == field.data() + field.size();
}

bool is_between_1_and(std::uint64_t most, std::string_view field) {
  std::uint64_t number = 0;
  return read_count(field, number) && number >= 1 && number <= most;
}

}  // namespace

bool is_matrix(std::string_view text) {
  std::string_view const first = text.substr(0, kMatrixMarket.size());
  return std::equal(first.begin(), first.end(), kMatrixMarket.begin(), kMatrixMarket.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

MatrixHead read_matrix_head(LineReader& lines, TableKind const& kind) {
  std::string const& path = lines.path();
  std::string_view line;
  lines.next(line);
  std::string first(line);
  std::transform(first.begin(), first.end(), first.begin(), [](unsigned char c) { return std::tolower(c); });
  std::vector<std::string_view> fields;
  split_at_blanks(first, fields);
  auto const has = [&](std::string_view word) { return std::find(fields.begin(), fields.end(), word) != fields.end(); };
  GPUPS_REQUIRE(
      has("coordinate") && (has("real") || has("integer") || has("pattern")) && (has("general") || has("symmetric")),
      "{} has the format '{}' (a sparse matrix is read, of real numbers, integers or a pattern): write it as "
      "'matrix coordinate real general'",
      path, line);
  MatrixHead head{.has_values = !has("pattern"), .symmetric = has("symmetric")};
  bool const takes_values = kind.columns.size() > 2;
  GPUPS_REQUIRE(!takes_values || kind.columns[2].is_number,
                "{} is a matrix in the Matrix Market format (a line of it has two numbers and a value): use a file of "
                "names",
                path);
  GPUPS_REQUIRE(!head.symmetric || kind.is_square,
                "{} is a symmetric matrix (the file has only half of it): write it as 'general'", path);
  GPUPS_REQUIRE(!takes_values || kind.columns[2].may_lack || head.has_values,
                "{} has the format 'coordinate pattern general' (it has no {}s): write it as 'coordinate real general'",
                path, kind.columns[2].is);
  while (lines.next(line)) {
    split_at_blanks(line, fields);
    if (fields.empty() || line.front() == '%') continue;
    GPUPS_REQUIRE(fields.size() == 3 && read_count(fields[0], head.rows) && read_count(fields[1], head.columns) &&
                      read_count(fields[2], head.entries),
                  "{}: the line does not have the numbers of rows, columns and entries (they follow the comments): "
                  "correct the line",
                  lines.position());
    GPUPS_REQUIRE(!kind.is_square || head.rows == head.columns,
                  "{} has {} rows and {} columns (a row and a column with the same number would be one name): write "
                  "its entries as lines of two names",
                  path, head.rows, head.columns);
    return head;
  }
  throw Error(fmt::format("{} ends before its size line (the file is incomplete): use a complete file", path));
}

std::string_view check_entry(std::span<std::string_view const> fields, MatrixHead const& head, TableKind const& kind) {
  if (!is_between_1_and(head.rows, fields[0])) return "has a row that is not between 1 and the file's number of rows";
  if (!is_between_1_and(head.columns, fields[1]))
    return "has a column that is not between 1 and the file's number of columns";
  if (!head.has_values) return {};
  auto const value = fields.size() > 2 ? finite_number(fields[2]) : std::nullopt;
  if (!value) return "has no value (a number)";
  bool const is_pair = kind.is_square || (kind.columns.size() == 2 && !kind.skips_rest);
  if (is_pair && !(*value > 0)) return "has a value that is not above 0, which would be read as a pair";
  return {};
}

}  // namespace gpups::trainer
