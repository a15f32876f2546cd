// SPDX-License-Identifier: Apache-2.0
// The groups of a batch, for kernels::SkipGram: neighbouring words, their windows, and negatives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/types.hpp"
#include "kernels/words/skip_gram.hpp"
#include "trainer/base/random.hpp"

namespace gpups::trainer {

// Draws numbers with given weights, in constant time (Walker 1977; Vose 1991).

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

inline constexpr std::uint64_t kGroupPositions = 32;  // the last group of a text or of a walk may have fewer

// See docs/words.md.
struct SkipGramOptions {
  std::uint32_t window = 5;
  std::uint32_t negatives = 15;         // their weight in the loss of a pair
  std::uint32_t shared_negatives = 48;  // of a group, at most
  float l2 = 0;                         // for each pair
  double subsample = 1e-3;              // of texts; 0: all positions are trained
  std::uint64_t seed = 1;
};

// The groups of one rank's batch, on the host; see kernels::SkipGram.
struct SkipGramGroups {
  std::vector<Key> words, contexts;
  std::vector<kernels::ContextWindow> windows;
  std::vector<std::uint32_t> word_offsets{0}, context_offsets{0};
};

// A word in its order, or the end of a line.
struct ListedWord {
  static constexpr std::uint32_t kLineEnd = 0xFFFFFFFF;

  std::uint32_t word;   // its number, or kLineEnd, across which no window reaches
  std::uint32_t reach;  // of its window, on either side
  bool is_end() const { return word == kLineEnd; }
};

// Makes groups of listed words. Any thread.
class GroupMaker {
 public:
  // keys: of all words, by number. They must outlive this object. counts: of their occurrences; negatives are drawn in
  // proportion to counts^.75 (Mikolov et al. 2013).
  GroupMaker(std::span<Key const> keys, std::span<double const> counts, SkipGramOptions const& options);

  // Adds a group of the words begin .. end - 1 of a list, which also has the words before and after them that are in
  // their windows. A word without neighbours is left out. Adds nothing if none is left.
  void add(std::span<ListedWord const> listed, std::size_t begin, std::size_t end, RandomBits const& of_negatives,
           SkipGramGroups& groups) const;

  AliasTable const& negatives() const { return draw_; }

 private:
  std::span<Key const> keys_;
  AliasTable draw_;
  std::uint32_t negatives_, shared_negatives_;
};

}  // namespace gpups::trainer
