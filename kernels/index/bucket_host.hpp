// SPDX-License-Identifier: Apache-2.0
// Helpers for searches on the host: the first buckets of a vector of keys, and the number at a place of a bucket,
// without branches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/index/bucket.hpp"

namespace gpups::kernels {

// The locality argument of a prefetch into the second-level cache, which can have more lines in flight than the
// first-level cache.
inline constexpr int kSecondLevel = 2;

// Vectors with a word, or a byte, for each of kKeysOfVector keys.
inline constexpr std::size_t kKeysOfVector = 8;
typedef std::uint64_t KeyWords __attribute__((vector_size(kKeysOfVector * sizeof(std::uint64_t))));
typedef std::uint8_t KeyBytes __attribute__((vector_size(kKeysOfVector)));

// Returns the hashes of kKeysOfVector keys.
[[gnu::always_inline]] inline KeyWords hashes_of(Key const* keys) {
  KeyWords words;
  std::memcpy(&words, keys, sizeof words);
  return hash_each(words);
}

// Returns the addresses of the first buckets of keys with these hashes.
[[gnu::always_inline]] inline KeyWords first_buckets(Buckets const& buckets, KeyWords hash) {
  KeyWords const at = first_place(hash, buckets.old.size);
  KeyWords const address = reinterpret_cast<std::uintptr_t>(buckets.old.bucket) + at * sizeof(Bucket);
  if (buckets.moved == 0) return address;
  KeyWords const there = first_place(hash, buckets.grown.size) * sizeof(Bucket);
  return at < buckets.moved ? reinterpret_cast<std::uintptr_t>(buckets.grown.bucket) + there : address;
}

// Writes tag_bit() of each hash.
[[gnu::always_inline]] inline void store_tags(KeyWords hash, std::uint8_t* tags) {
  auto const bytes = __builtin_convertvector(tag_bit(hash), KeyBytes);
  std::memcpy(tags, &bytes, sizeof bytes);
}

// Returns 1 if `place`, a result of Bucket::place_of(), is 0, else 0. The compiler would turn a comparison into a
// branch.
inline std::uint32_t is_none(std::uint32_t place) { return (place - 1) >> 31; }
static_assert(kNoRow == 0U - 1);

// Returns the number at `place`, a result of Bucket::place_of(). If `place` is 0, returns the marks, which follow the
// numbers.
[[gnu::always_inline]] inline std::uint32_t number_at(Bucket const& bucket, std::uint32_t place) {
  auto const* const numbers = reinterpret_cast<std::uint32_t const*>(&bucket) + 2 * kBucketKeys;
  return numbers[lowest_bit(place | 1U << kBucketKeys)];
}

}  // namespace gpups::kernels
