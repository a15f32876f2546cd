// SPDX-License-Identifier: Apache-2.0
// Sums blocks of streams, piece by piece, in an array that stays in a core's first-level cache. Nothing is merged, and
// in sparse blocks only elements that are present are read. The terms of an element are added in the order of the
// streams. On the host.
#pragma once

#include <span>
#include <vector>

#include "kernels/sparse/decoded_block.hpp"

namespace gpups::kernels {

// The sum of one block at a time, with memory that is reused for the next block.
template <class T>
class BlockSum {
 public:
  // Reads block `block` of each stream. Calls bad(i) if that of stream i is invalid; it then counts as empty.
  template <class Bad>
  void read(std::span<StreamView const> streams, std::size_t block, Bad bad) {
    while (terms_.size() < streams.size()) terms_.emplace_back();
    given_ = 0;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      StreamBlock const& its = streams[s].blocks()[block];
      if (!terms_[s].read(streams[s].form(), its)) bad(s);
      given_ += its.word.count;
    }
    count_ = streams.size();
  }

  // Sets sums to the sum of the blocks, or adds it with `add`.
  void write(T* sums, std::uint32_t width, bool add) {
    each_piece(width, [&](std::uint32_t first, std::uint32_t last) {
      if (add) {
        for (std::size_t s = 0; s < count_; ++s) terms_[s].add(sums + first, nullptr, first, last);
      } else {
        set(sums + first, first, last);
      }
    });
  }

  // Returns the sums that are not zero. They are valid until the next call.
  BlockEntries<T> sum(std::uint32_t width) {
    memory_.begin();
    return are_many(given_, width) ? many(width) : few(width);
  }

 private:
  void set(T* sums, std::uint32_t first, std::uint32_t last) {
    if (count_ == 0) {
      std::memset(sums, 0, (last - first) * sizeof(T));
    } else {
      terms_[0].set(sums, first, last);
    }
    for (std::size_t s = 1; s < count_; ++s) terms_[s].add(sums, nullptr, first, last);
  }

  BlockEntries<T> many(std::uint32_t width) {
    make_room();
    each_piece(width, [&](std::uint32_t first, std::uint32_t last) {
      dirty_ = std::max<std::size_t>(dirty_, last - first);
      set(sums_.data(), first, last);
      memory_.find_many(sums_.data(), first, last);
    });
    return memory_.many(width);
  }

  // The array stays zero between calls, so that only present elements are read.
  BlockEntries<T> few(std::uint32_t width) {
    make_room();
    std::memset(sums_.data(), 0, dirty_ * sizeof(T));
    dirty_ = 0;
    each_piece(width, [&](std::uint32_t first, std::uint32_t last) {
      for (std::size_t s = 0; s < count_; ++s) terms_[s].add(sums_.data(), memory_.bits.data(), first, last);
      memory_.take_few(sums_.data(), first, last, given_ * 64 > width);
    });
    return memory_.few();
  }

  void make_room() {
    if (sums_.size() > 0) return;
    sums_ = Array<T>(Device::host(), kStreamBlock);
    dirty_ = sums_.size();
  }

  // Calls f(first, last) for pieces of 32 KiB, or for the whole block if pieces would have hardly any elements.
  template <class F>
  void each_piece(std::uint32_t width, F f) const {
    constexpr std::uint32_t kPiece = 32768 / sizeof(T);
    std::uint32_t const piece = given_ * 64 < width ? width : kPiece;
    for (std::uint32_t first = 0; first < width; first += piece) f(first, std::min(first + piece, width));
  }

  std::vector<DecodedBlock<T>> terms_;  // a block of each stream
  std::size_t count_ = 0, given_ = 0;   // the number of streams, and of their elements
  Array<T> sums_;                       // of one piece, at its beginning
  std::size_t dirty_ = 0;               // this many elements at the beginning may be other than zero
  EntryMemory<T> memory_;
};

}  // namespace gpups::kernels
