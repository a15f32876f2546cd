// SPDX-License-Identifier: Apache-2.0
// The values that have their own rows: those that are frequent in the training data. The rare values of a category
// share one row, which is also used for values that the training data does not have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/store.hpp"
#include "gpups/types.hpp"

namespace gpups::trainer {

// A set of keys. Takes 16 to 32 bytes for each.
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

// Counts how often each key is added. Takes 18 to 36 bytes for each distinct key.
class KeyCounts {
 public:
  KeyCounts();
  // Adds a key. Returns how often it has been added, up to 255.
  std::uint32_t add(Key key);
  // Returns the keys that were added at least `least` times. REQUIRES: least <= 255, where counting stops.
  FrequentValues at_least(std::uint32_t least) const;

 private:
  void grow();

  std::vector<std::uint64_t> slots_;  // as above
  std::vector<std::uint8_t> counts_;  // of each slot
  std::size_t size_ = 0;
  std::uint8_t zeros_ = 0;
};

// Returns the keys as a blob of a checkpoint.
Blob to_blob(FrequentValues const& values);
// Reads the keys from a checkpoint. Throws Error if their blob is missing or cut.
FrequentValues frequent_values(std::span<Blob const> blobs);

}  // namespace gpups::trainer
