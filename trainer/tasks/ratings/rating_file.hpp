// SPDX-License-Identifier: Apache-2.0
// Reads text files of ratings: lines of a row id, a column id and a rating, or a sparse matrix in the Matrix Market
// format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// A rating with the ids in the file.
struct RatingLine {
  std::uint64_t row = 0, column = 0;
  float value = 0;
  bool operator==(RatingLine const&) const = default;
};

// Parses the three fields of a line, separated by blanks, tabs, commas, colons or semicolons. Ignores further fields,
// such as a time. Returns why the line is invalid, or nothing if it is valid.
std::string_view parse_rating(std::string_view line, RatingLine& rating);
// The same for the first two fields; the value becomes 0.
std::string_view parse_pair(std::string_view line, RatingLine& rating);

// Reads a file. Skips a first line that begins with a letter, as a heading. Adds notices about skipped lines. Throws
// Error if there are no ratings, or if the share of bad lines is more than `bad_share_max`.
std::vector<RatingLine> read_rating_file(std::filesystem::path const& path, double bad_share_max,
                                         std::vector<std::string>& notices);

}  // namespace gpups::trainer
