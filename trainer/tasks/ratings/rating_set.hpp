// SPDX-License-Identifier: Apache-2.0
// Ratings in memory: three splits, with numbered rows and columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/tasks/ratings/id_map.hpp"

namespace gpups::trainer {

// An element of the matrix of ratings.
struct Rating {
  std::uint32_t row, column;  // numbers of an IdMap
  float value;
  bool operator==(Rating const&) const = default;
};

// All ratings of a run.
struct RatingSet {
  IdMap rows, columns;                            // rows and columns of `train` have the lowest numbers
  std::size_t known_rows = 0, known_columns = 0;  // number of rows and columns in `train`
  std::vector<Rating> train, valid, test;
  std::vector<std::string> notices;

  // REQUIRES: name is "valid" or "test".
  std::vector<Rating> const& split(std::string_view name) const { return name == "valid" ? valid : test; }
  // Returns a digest of the data.
  std::uint64_t digest() const;
};

// Reads the files of a configuration. If a split has no file, it gets a random share of the training file. Throws Error
// if a file has no ratings or too many bad lines.
RatingSet read_ratings(DataConfig const& config);

}  // namespace gpups::trainer
