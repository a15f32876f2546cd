// SPDX-License-Identifier: Apache-2.0
// A worker's cache in HET (Miao et al., VLDB 2022) without values: the rows that have a line, their versions and their
// updates that have not been pushed. A use of a row takes constant time with kLru and kTinyLfu, and with kLfu a time
// that is logarithmic in the largest number of uses.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/placement/het/frequency_sketch.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// Which line a full cache gives to another row.
enum class Eviction : std::uint8_t {
  kLru,      // the one that was not used for longest
  kLfu,      // the one with the fewest uses since it has the row; of these, the one that was not used for longest
  kTinyLfu,  // as kLru, if the other row was used more often according to a frequency sketch; else none
};
inline constexpr Eviction kEvictions[] = {Eviction::kLru, Eviction::kLfu, Eviction::kTinyLfu};
char const* name_of(Eviction eviction);
// Returns the one with this name. Throws Error if there is none.
Eviction eviction_of(std::string_view name);

class HetCache {
 public:
  struct Line {
    Key key{};
    std::uint64_t version = 0;  // updates of the row that the copy has, without those that are not pushed
    std::uint64_t updates = 0;  // of this worker, that are not pushed
    std::uint64_t uses = 0;     // for kLfu; else 0
  };

  // REQUIRES: lines_max > 0.
  HetCache(Eviction eviction, std::size_t lines_max);
  HetCache(HetCache&&) = default;  // a copy's index would have the lines of the original

  // Counts a use of a row. Returns its line, or null if it has none. The pointer is valid until the line is evicted.
  Line* use(Key key);
  // Returns the line of a row, or null if it has none.
  Line* find(Key key);
  // Gives a row a line, if the row is admitted. Returns the line that is evicted for it, if there is one. REQUIRES: the
  // row has no line, and use() was called for it.
  std::optional<Line> insert(Key key, std::uint64_t version);

  std::size_t size() const { return lines_.size(); }
  // Returns copies of the lines, in the order in which they would be evicted.
  std::vector<Line> lines() const;

 private:
  using Lines = std::list<Line>;

  Eviction eviction_;
  std::size_t lines_max_;
  std::map<std::uint64_t, Lines> by_uses_;  // each list begins with the line that was not used for longest
  std::unordered_map<Key, Lines::iterator> lines_;
  std::optional<FrequencySketch> sketch_;
};

}  // namespace gpups::cache
