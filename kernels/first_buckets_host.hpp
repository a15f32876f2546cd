// SPDX-License-Identifier: Apache-2.0
// Where the searches for a vector of keys begin, on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/bucket.hpp"

namespace gpups::kernels {

// What asks for a bucket in the second-level cache, which can wait for more lines at once than the first.
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

}  // namespace gpups::kernels
