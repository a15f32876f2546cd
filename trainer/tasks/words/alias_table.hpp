// SPDX-License-Identifier: Apache-2.0
// Draws numbers with given weights, in constant time (Walker 1977; Vose 1991).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpups::trainer {

// A distribution of 0 .. n - 1. Takes 8 bytes for each number.
class AliasTable {
 public:
  // The probability of i is proportional to weights[i], up to 2^-32. REQUIRES: fewer than 2^32 weights, none negative,
  // and one positive.
  explicit AliasTable(std::span<double const> weights);

  // Returns a number for 64 random bits.
  std::uint32_t operator()(std::uint64_t bits) const {
    auto const slot = static_cast<std::uint32_t>((bits >> 32) * slots_.size() >> 32);
    return (bits & 0xFFFFFFFF) < slots_[slot].own_below ? slot : slots_[slot].alias;
  }

 private:
  // A number of 32 bits selects the slot's own number if it is below `own_below`, else the other.
  struct Slot {
    std::uint32_t own_below, alias;
  };
  std::vector<Slot> slots_;
};

}  // namespace gpups::trainer
