// SPDX-License-Identifier: Apache-2.0
// Which values a model tells apart: those that are not rare in its training data. The rare ones of a category, and
// those that training has never seen, have a row in common, so that a model knows what to make of the unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/store.hpp"
#include "gpups/types.hpp"

namespace gpups::trainer {

// A set of keys, 8 to 32 bytes each.
class FrequentValues {
 public:
  FrequentValues() = default;
  explicit FrequentValues(std::span<std::uint64_t const> keys);

  bool has(Key key) const;
  std::size_t size() const { return size_; }
  std::vector<std::uint64_t> keys() const;  // ascending

 private:
  std::vector<std::uint64_t> slots_;  // open addressing; 0: free
  std::size_t size_ = 0;
  bool has_zero_ = false;
};

// Counts keys. 9 to 36 bytes for each different one.
class KeyCounts {
 public:
  KeyCounts();
  void add(Key key);
  // Those that were added `least` times or more; at most 255 times are told apart.
  FrequentValues at_least(std::uint32_t least) const;

 private:
  void grow();

  std::vector<std::uint64_t> slots_;  // as above
  std::vector<std::uint8_t> counts_;  // of each slot
  std::size_t size_ = 0;
  std::uint8_t zeros_ = 0;
};

// As a part of a checkpoint.
Blob to_blob(FrequentValues const& values);
// Throws Error where there is none.
FrequentValues frequent_values(std::span<Blob const> blobs);

}  // namespace gpups::trainer
