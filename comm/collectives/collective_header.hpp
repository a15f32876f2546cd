// SPDX-License-Identifier: Apache-2.0
// The headers of collectives, and the signature in the first header of a rank: kind, size and algorithm. Ranks whose
// k-th collectives have different signatures get an error. A header also announces a message: it has the size of the
// message, or all of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// A message of at most this many bytes in host memory is sent inside its header.
inline constexpr std::size_t kInlineBytesMax = std::size_t{4} << 10;

// Returns whether the array of a rank, of `bytes`, should be sent to every other rank inside a header. This is the
// fastest way for short arrays; with many ranks, recursive doubling is faster.
bool fits_eager(int ranks, std::size_t bytes);

// The contents of a header.
struct CollectiveHeader {
  // One message of the sender. If its bytes are not in the header, they follow as bulk data with collective_tag() of
  // the sequence number and the index.
  struct MessagePart {
    std::uint64_t index = 0;  // among the messages from this sender to this receiver in the collective
    std::uint64_t size = 0;   // bytes
    std::string bytes{};      // all bytes if there are at most kInlineBytesMax and they were on the host, else none
    bool is_inline() const { return bytes.size() == size; }
  };
  std::optional<Signature> signature{};  // in the first header of a rank
  std::optional<MessagePart> message{};
};

std::string encode(CollectiveHeader const& header);
// Throws SerializationError if `bytes` is not a valid header.
CollectiveHeader decode_header(std::string_view bytes);

}  // namespace gpups::comm
