// SPDX-License-Identifier: Apache-2.0
// What a rank tells another of a run: what it is, the first time, and of a message how large it is, or all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/collectives/signature.hpp"

namespace gpups::comm {

// A message with no more bytes than these is sent within its header.
inline constexpr std::size_t kInlineBytesMax = std::size_t{4} << 10;

// Whether all that a rank has of a sum, so many bytes, may go to every other rank within a header: for arrays so short
// nothing is faster. Where there are many others, pairs at growing distances are.
bool fits_eager(int ranks, std::size_t bytes);

struct CollectiveHeader {
  // A message of the sender's. Bulk data with the run's tag for it follows unless the bytes are here.
  struct MessagePart {
    std::uint64_t index = 0;  // among all that it sends this receiver in the run
    std::uint64_t size = 0;   // bytes
    std::string bytes{};      // all of them, where there are at most kInlineBytesMax and they were on the host
    bool is_inline() const { return bytes.size() == size; }
  };
  std::optional<Signature> signature{};  // in the first header of a run
  std::optional<MessagePart> message{};
};

std::string encode(CollectiveHeader const& header);
// Throws WireError for what is none.
CollectiveHeader decode_header(std::string_view bytes);

}  // namespace gpups::comm
