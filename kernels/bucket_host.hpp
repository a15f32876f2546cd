// SPDX-License-Identifier: Apache-2.0
// How the host reads buckets: where the searches for a vector of keys begin, and what is at a place, without a branch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/bucket.hpp"

namespace gpups::kernels {

// The locality of a prefetch into the second-level cache, which can wait for more lines at once than the first.
inline constexpr int kSecondLevel = 2;

// As many keys as fill a vector, and something about each.
inline constexpr std::size_t kKeysOfVector = 8;
typedef std::uint64_t KeyWords __attribute__((vector_size(kKeysOfVector * sizeof(std::uint64_t))));
typedef std::uint8_t KeyBytes __attribute__((vector_size(kKeysOfVector)));

[[gnu::always_inline]] inline KeyWords hashes_of(Key const* keys) {
  KeyWords words;
  std::memcpy(&words, keys, sizeof words);
  return hash_each(words);
}

// The addresses of their first buckets.
[[gnu::always_inline]] inline KeyWords first_buckets(Buckets const& buckets, KeyWords hash) {
  KeyWords const at = first_place(hash, buckets.old.size);
  KeyWords const address = reinterpret_cast<std::uintptr_t>(buckets.old.bucket) + at * sizeof(Bucket);
  if (buckets.moved == 0) return address;
  KeyWords const there = first_place(hash, buckets.grown.size) * sizeof(Bucket);
  return at < buckets.moved ? reinterpret_cast<std::uintptr_t>(buckets.grown.bucket) + there : address;
}

// Writes went_on_bit() of each.
[[gnu::always_inline]] inline void store_tags(KeyWords hash, std::uint8_t* tags) {
  auto const bytes = __builtin_convertvector(went_on_bit(hash), KeyBytes);
  std::memcpy(tags, &bytes, sizeof bytes);
}

// What Bucket::place_of() returns, as a number: 1 where there is no place, else 0. Of a comparison the compiler makes a
// branch.
inline std::uint32_t is_none(std::uint32_t place) { return (place - 1) >> 31; }
static_assert(kNoRow == 0U - 1);

// The number at a place; where that is none, the marks, which follow the numbers.
[[gnu::always_inline]] inline std::uint32_t number_at(Bucket const& bucket, std::uint32_t place) {
  auto const* const numbers = reinterpret_cast<std::uint32_t const*>(&bucket) + 2 * kBucketKeys;
  return numbers[lowest_bit(place | 1U << kBucketKeys)];
}

}  // namespace gpups::kernels
