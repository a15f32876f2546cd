// SPDX-License-Identifier: Apache-2.0
// A text file of ratings: lines of a row's id, a column's id and a rating, or a sparse matrix in Matrix Market's
// format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// A rating as the file has it.
struct RatingLine {
  std::uint64_t row = 0, column = 0;
  float value = 0;
  bool operator==(RatingLine const&) const = default;
};

// Reads a line's three fields, with blanks, tabs, commas, colons or semicolons between them; what follows, such as a
// time, is left out. Returns what is wrong with the line, or nothing.
std::string_view parse_rating(std::string_view line, RatingLine& rating);

// Reads a file. A heading is left out: a first line that begins with a letter. Throws Error where there are no ratings,
// or more than `bad_share_max` of the lines are none, naming the first of them.
std::vector<RatingLine> read_rating_file(std::filesystem::path const& path, double bad_share_max,
                                         std::vector<std::string>& notices);

}  // namespace gpups::trainer
