// SPDX-License-Identifier: Apache-2.0
// The hash of keys, and the home of a key, which is the rank that owns it.
#pragma once

#include <cstdint>

#include "gpups/types.hpp"

namespace gpups::kernels {

// A one-to-one map of 64-bit words in which every input bit changes every output bit with probability one half: the
// finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Words: one
// word, or a vector of words.
template <class Words>
constexpr Words mix_each(Words x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}
constexpr std::uint64_t mix(std::uint64_t x) { return mix_each(x); }

// Returns the hash of keys. Its high half selects the home, its low half the bucket in an index. Words: see mix_each().
template <class Words>
constexpr Words hash_each(Words keys) {
  return mix_each(keys + 0x9E3779B97F4A7C15U);
}
constexpr std::uint64_t hash_of(Key key) { return hash_each(number(key)); }

// Returns the home, < homes, of keys with this hash. Non-decreasing in the hash.
constexpr std::uint32_t home_of_hash(std::uint64_t hash, std::uint32_t homes) {
  return static_cast<std::uint32_t>(((hash >> 32) * homes) >> 32);
}
constexpr std::uint32_t home_of(Key key, std::uint32_t homes) { return home_of_hash(hash_of(key), homes); }

}  // namespace gpups::kernels
