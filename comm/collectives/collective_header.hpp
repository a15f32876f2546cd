// SPDX-License-Identifier: Apache-2.0
// The headers of collectives. The first header of a rank in a collective has the rank's signature. A header also
// announces a message: it has the size of the message, or all of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/collectives/signature.hpp"

namespace gpups::comm {

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
