// SPDX-License-Identifier: Apache-2.0
// Owns the buckets of a key index, and grows them in bounded parts: with each key that comes in, five buckets are made
// empty or moved to an array half as large again, until the old one can go. Full to between 57 and 85 % - the
// rest of an array that is being left up to 95 % - that is 15 to 23 bytes per key, and both arrays meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct Buckets;

class BucketStorage {
 public:
  BucketStorage() = default;
  // So many keys fill three quarters.
  BucketStorage(Device device, std::size_t keys, std::size_t least_buckets = kLeastBuckets);

  Buckets ref() const;
  // Keys that fit before it grows.
  std::size_t capacity() const;
  // Whether keys move to a new array, which goes on with each call of wait_make_room().
  bool is_moving() const { return !grown_.empty(); }
  // Makes sure that `more` keys fit beside the `keys` that are in. Waits for `stream` at times.
  void wait_make_room(Stream& stream, std::size_t keys, std::size_t more);
  // Erased keys leave marks, so the rest moves to a new array when many have gone.
  void count_erased(std::size_t keys) { erased_ += keys; }

  // How often it began to grow.
  std::size_t growths() const { return growths_; }
  std::size_t bytes() const { return old_.bytes() + grown_.bytes(); }
  static std::size_t bytes_for(std::size_t keys, std::size_t least_buckets = kLeastBuckets);
  // Fewer make sense where there are many indices with few keys in each.
  static constexpr std::size_t kLeastBuckets = 16;

 private:
  void begin_move(Stream& stream, std::size_t buckets);
  // Empties and moves at least so many buckets, if there are as many.
  void wait_move(Stream& stream, std::size_t buckets);

  Array<std::uint64_t> old_, grown_;  // 8 words each; the second: only while keys move
  std::uint32_t emptied_ = 0, moved_ = 0;
  std::size_t erased_ = 0;  // since the last move began
  std::size_t growths_ = 0;
};

}  // namespace gpups::kernels
