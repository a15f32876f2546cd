// SPDX-License-Identifier: Apache-2.0
// The signature of a collective: its kind, size and algorithm. Ranks whose k-th collectives have different signatures
// get an error.
#pragma once

#include <cstdint>
#include <string>

namespace gpups::comm {

// The most elements of one array.
inline constexpr std::uint64_t kSumElementsMax = std::uint64_t{1} << 32;

// The kinds of collectives. The values are part of the protocol.
enum class CollectiveKind : std::uint8_t { kSumIntegers, kSumFloats, kSumSparse, kScatterSparse, kSumTopK };
inline constexpr std::uint8_t kCollectiveKinds = 5;

// The properties of a collective that must be equal on all ranks.
struct Signature {
  CollectiveKind operation{};
  std::uint64_t elements = 0;  // of the whole array
  std::string how{};           // the algorithm and the wire format, if the caller has a choice
  bool operator==(Signature const&) const = default;
};

// The most bytes of Signature::how.
inline constexpr std::size_t kHowBytesMax = 100;

// Returns a name such as "allreduce".
char const* name_of(CollectiveKind operation);
// Returns a description such as "sums 3 integers".
std::string describe(Signature const& signature);

}  // namespace gpups::comm
