// SPDX-License-Identifier: Apache-2.0
// Ratings in memory, in three splits, of numbered rows and columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config.hpp"
#include "trainer/ratings/id_map.hpp"

namespace gpups::trainer {

struct Rating {
  std::uint32_t row, column;  // their numbers, see IdMap
  float value;
  bool operator==(Rating const&) const = default;
};

struct RatingSet {
  IdMap rows, columns;                            // those of `train` come first
  std::size_t known_rows = 0, known_columns = 0;  // how many of them are in `train`
  std::vector<Rating> train, valid, test;
  std::vector<std::string> notices;

  // REQUIRES: name is "valid" or "test".
  std::vector<Rating> const& split(std::string_view name) const { return name == "valid" ? valid : test; }
  // Equal data has equal ones.
  std::uint64_t digest() const;
};

// Reads the files of a configuration; without files for them, some of the training data is held out at random. Throws
// Error, naming file and line, where there is no data or too much of it is bad.
RatingSet read_ratings(DataConfig const& config);

}  // namespace gpups::trainer
