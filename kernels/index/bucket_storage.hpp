// SPDX-License-Identifier: Apache-2.0
// Owns the buckets of a key index and grows them in bounded parts. To grow, all keys move to an array that is half as
// large again: for each key that is inserted, five buckets are either cleared in the new array or moved to it. The old
// array is freed when it is empty. Buckets are 57 to 85 % full, which is 15 to 23 bytes per key. While keys move there
// are two arrays, and the part of the old one that has not moved is at most 95 % full.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct Buckets;

// The buckets of one key index.
class BucketStorage {
 public:
  BucketStorage() = default;
  // keys: the number of keys that fill three quarters of the places.
  BucketStorage(Device device, std::size_t keys, std::size_t least_buckets = kLeastBuckets);

  Buckets ref() const;
  // Returns the number of keys that fit before the array must grow.
  std::size_t capacity() const;
  // Returns whether keys are moving to a new array. Each call of wait_make_room() continues the move.
  bool is_moving() const { return !grown_.empty(); }
  // Makes room for `more` keys in addition to the `keys` that the index has. Some calls wait for `stream`.
  void wait_make_room(Stream& stream, std::size_t keys, std::size_t more);
  // Counts erased keys. They leave marks that make searches longer, so the remaining keys move to a new array after
  // many of them.
  void count_erased(std::size_t keys) { erased_ += keys; }

  // Returns how many times the array began to grow.
  std::size_t growths() const { return growths_; }
  std::size_t bytes() const { return old_.bytes() + grown_.bytes(); }
  // Returns the bytes of buckets for `keys` keys, before growth.
  static std::size_t bytes_for(std::size_t keys, std::size_t least_buckets = kLeastBuckets);
  // The default least number of buckets. Smaller numbers make sense for many indices with few keys each.
  static constexpr std::size_t kLeastBuckets = 16;

 private:
  // Starts the move of all keys to a new array of `buckets` buckets.
  void begin_move(Stream& stream, std::size_t buckets);
  // Clears and then moves the next buckets, `buckets` together, or as many as remain.
  void wait_move(Stream& stream, std::size_t buckets);

  Array<std::uint64_t> old_, grown_;  // 8 words for each bucket; grown_: only while keys move
  std::uint32_t emptied_ = 0, moved_ = 0;
  std::size_t erased_ = 0;  // since the last move began
  std::size_t growths_ = 0;
};

}  // namespace gpups::kernels
