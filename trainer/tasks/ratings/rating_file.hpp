// SPDX-License-Identifier: Apache-2.0
// Reads text files of ratings: columns of row ids, column ids and ratings, or a sparse matrix in the Matrix Market
// format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// A rating with the ids in the file.
struct RatingLine {
  std::uint64_t row = 0, column = 0;
  float value = 0;
  bool operator==(RatingLine const&) const = default;
};

// Reads the ratings of the files that a setting names, `file` in config.folder: a row id, a column id and a rating;
// further columns are skipped. Adds notices about what was found and skipped. Throws Error if there are no ratings, or
// if the share of bad lines is more than config.bad_share_max.
// same: of other files of the run, or null.
std::vector<RatingLine> read_rating_file(DataConfig const& config, std::string const& file,
                                         std::vector<std::string>& notices, SameColumns* same = nullptr);

// Reads the pairs of a row id and a column id of a file, with values of 0; further columns are skipped. Throws Error
// for a bad line, and if the columns are not those of the training files.
void read_rating_pairs(std::filesystem::path const& path, TableSettings const& settings, SameColumns trained,
                       std::vector<std::string>& notices, std::function<void(RatingLine const&)> const& take);

}  // namespace gpups::trainer
