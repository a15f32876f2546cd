// SPDX-License-Identifier: Apache-2.0
// Ratings in memory: three splits, with numbered rows and columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"
#include "trainer/config/config.hpp"
#include "trainer/tasks/ratings/rating_file.hpp"

namespace gpups::trainer {

// Numbers the ids of rows or of columns from 0, in the order in which they are added. An id is any 64-bit number. Takes
// about 20 bytes per id.

// A hash map from ids to numbers.
class IdMap {
 public:
  // Returns the number of an id, and adds the id if it is new. REQUIRES: fewer than 2^32 - 1 ids.
  std::uint32_t add(std::uint64_t id);
  std::size_t size() const { return keys_.size(); }
  // Returns the bytes of memory.
  std::uint64_t bytes() const { return keys_.capacity() * sizeof(Key) + slots_.capacity() * sizeof(std::uint32_t); }
  // Maps a number to the key of its row in the table. The key is the id.
  std::vector<Key> const& keys() const { return keys_; }

 private:
  void grow();

  std::vector<Key> keys_;
  std::vector<std::uint32_t> slots_;  // open addressing, at most half full: number + 1; 0 is free
};

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
  SameColumns columns_of_files{};

  // REQUIRES: name is "valid" or "test".
  std::vector<Rating> const& split(std::string_view name) const { return name == "valid" ? valid : test; }
  // Returns a digest of the data.
  std::uint64_t digest() const;
};

// Reads the files of a configuration. If a split has no file, it gets a random share of the training file. Throws Error
// if a file has no ratings or too many bad lines.
RatingSet read_ratings(DataConfig const& config);

}  // namespace gpups::trainer
