// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "kernels/base/check.hpp"
#include "trainer/input/line_reader.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMatrixMarket = "%%MatrixMarket", kBlanks = " \t", kBetween = " \t,:;";
constexpr std::size_t kLineBytesMin = 6;  // "1 1 1" and its end

void skip_blanks(std::string_view& line) { line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size())); }

// Removes the next field and the separator after it from the front of a line, and returns the field. A separator is
// blanks, or one of , ; : and ::, with or without blanks. Returns an empty field at the end of the line.
std::string_view take_field(std::string_view& line) {
  skip_blanks(line);
  std::string_view const field = line.substr(0, line.find_first_of(kBetween));
  line.remove_prefix(field.size());
  skip_blanks(line);
  if (!line.empty() && kBetween.find(line.front()) != std::string_view::npos) {
    line.remove_prefix(line.starts_with("::") ? 2 : 1);
  }
  return field;
}

template <class Number>
bool is_number(std::string_view field, Number& value) {
  auto const [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error == std::errc{} && stop == field.data() + field.size();
}

// Removes the two ids from the front of a line. Returns why they are invalid, or nothing if they are valid.
std::string_view take_ids(std::string_view& line, RatingLine& rating) {
  if (!is_number(take_field(line), rating.row)) return "has no row id (a number from 0 to 2^64 - 1)";
  if (!is_number(take_field(line), rating.column)) return "has no column id (a number from 0 to 2^64 - 1)";
  return {};
}

// The size line of a Matrix Market file.
struct MatrixSizes {
  std::uint64_t rows, columns, entries;
};

// Reads the lines after the first line of a Matrix Market file, up to and including the size line.
MatrixSizes read_matrix_head(std::string_view first, LineReader& reader, fs::path const& path) {
  GPUPS_REQUIRE(
      first.find(" matrix coordinate ") != std::string_view::npos &&
          (first.find(" real ") != std::string_view::npos || first.find(" integer ") != std::string_view::npos),
      "{} has the format '{}' (ratings need a sparse matrix of numbers): write it as 'matrix coordinate real general'",
      path.string(), first);
  GPUPS_REQUIRE(first.find(" general") != std::string_view::npos,
                "{} has the format '{}' (the file has only half of a symmetric matrix): write it as 'general'",
                path.string(), first);
  std::string_view line;
  while (reader.next(line)) {
    if (line.empty() || line.front() == '%') continue;
    std::uint64_t rows = 0, columns = 0, entries = 0;
    GPUPS_REQUIRE(is_number(take_field(line), rows) && is_number(take_field(line), columns) &&
                      is_number(take_field(line), entries),
                  "{}: the line does not have the numbers of rows, columns and entries (they follow the comments): "
                  "correct the line",
                  reader.position());
    return {rows, columns, entries};
  }
  throw Error(fmt::format("{} ends before its size line (the file is incomplete): use a complete file", path.string()));
}

// Returns why an entry of the file is invalid, or nothing if it is valid.
std::string_view check_entry(RatingLine const& rating, MatrixSizes const& sizes) {
  if (rating.row < 1 || rating.row > sizes.rows) return "has a row that is not between 1 and the file's number of rows";
  if (rating.column < 1 || rating.column > sizes.columns)
    return "has a column that is not between 1 and the file's number of columns";
  return {};
}

}  // namespace

std::string_view parse_rating(std::string_view line, RatingLine& rating) {
  if (std::string_view const wrong = take_ids(line, rating); !wrong.empty()) return wrong;
  if (!is_number(take_field(line), rating.value) || !std::isfinite(rating.value)) return "has no rating (a number)";
  return {};
}

std::string_view parse_pair(std::string_view line, RatingLine& rating) {
  rating.value = 0;
  return take_ids(line, rating);
}

std::vector<RatingLine> read_rating_file(fs::path const& path, double bad_share_max,
                                         std::vector<std::string>& notices) {
  LineReader reader(path);
  BadLines lines;
  std::vector<RatingLine> ratings;
  MatrixSizes sizes{};
  bool matrix = false;
  std::string_view line;
  while (reader.next(line)) {
    if (reader.line_number() == 1 && line.starts_with(kMatrixMarket)) {
      matrix = true;
      sizes = read_matrix_head(std::string(line), reader, path);
      std::error_code unknown;  // set if the file has no size, like a pipe
      std::uint64_t const bytes = fs::file_size(path, unknown);
      if (!unknown) ratings.reserve(std::min<std::uint64_t>(sizes.entries, bytes / kLineBytesMin));
      continue;
    }
    if (matrix && (line.empty() || line.front() == '%')) continue;
    if (reader.line_number() == 1 && !line.empty() && std::isalpha(static_cast<unsigned char>(line.front())) != 0) {
      notices.push_back(fmt::format("skipped the heading of {}", path.string()));
      continue;
    }
    ++lines.lines;
    RatingLine rating;
    std::string_view wrong = parse_rating(line, rating);
    if (matrix && wrong.empty()) wrong = check_entry(rating, sizes);
    wrong.empty() ? ratings.push_back(rating) : lines.add(reader.position(), wrong);
  }
  GPUPS_REQUIRE(!matrix || lines.lines == sizes.entries,
                "{} has {} entries, but its size line says {} (the file is incomplete, or the line is wrong): use a "
                "complete file",
                path.string(), lines.lines, sizes.entries);
  lines.report(path, bad_share_max, "a row id, a column id and a rating", "data.bad_share_max", notices);
  GPUPS_REQUIRE(!ratings.empty(), "{} has no ratings (training and evaluation need some): check the file",
                path.string());
  return ratings;
}

}  // namespace gpups::trainer
