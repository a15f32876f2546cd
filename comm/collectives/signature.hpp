// SPDX-License-Identifier: Apache-2.0
// What a run of a collective is, in few words: ranks whose k-th runs differ in it cannot go on.
#pragma once

#include <cstdint>
#include <string>

namespace gpups::comm {

// Elements of one array.
inline constexpr std::uint64_t kSumElementsMax = std::uint64_t{1} << 32;

enum class CollectiveKind : std::uint8_t { kSumIntegers, kSumFloats, kSumSparse, kScatterSparse, kSumTopK };
inline constexpr std::uint8_t kCollectiveKinds = 5;

struct Signature {
  CollectiveKind operation{};
  std::uint64_t elements = 0;  // of the whole array
  std::string how{};           // the algorithm and the numbers' format, where the caller has a choice
  bool operator==(Signature const&) const = default;
};

inline constexpr std::size_t kHowBytesMax = 100;

// As in "allreduce".
char const* name_of(CollectiveKind operation);
// As in "sums 3 integers".
std::string describe(Signature const& signature);

}  // namespace gpups::comm
