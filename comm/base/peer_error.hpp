// SPDX-License-Identifier: Apache-2.0
// Errors about other ranks: that a rank is lost or has left, and texts of other ranks, which are made safe to print in
// error messages and on terminals.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "gpups/error.hpp"

namespace gpups::comm {

// A PeerError that keeps the reason apart, so that this rank can report it to other ranks.
class PeerLost : public PeerError {
 public:
  // why: the reason, without the number of the rank, such as "its process ended"; empty: the rank has left in order.
  PeerLost(Rank peer, std::string const& why)
      : PeerError(peer, why.empty()
                            ? fmt::format("rank {} has left (it receives no more messages): end all ranks at the "
                                          "same step",
                                          number(peer))
                            : fmt::format("rank {} is lost (no step can end without it): {}", number(peer), why)),
        why_(why) {}
  std::string const& why() const { return why_; }

 private:
  std::string why_;
};

inline constexpr std::size_t kPeerTextBytesMax = 1000;

// Returns the text with each control character replaced by a question mark, and cut after `bytes_max` bytes.
inline std::string peer_text(std::string_view text, std::size_t bytes_max = kPeerTextBytesMax) {
  bool const cut = text.size() > bytes_max;
  std::size_t length = std::min(text.size(), bytes_max);
  // Do not cut inside a UTF-8 character: its second and later bytes start with the bits 10.
  while (cut && length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  std::string clean(text.substr(0, length));
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return cut ? clean + " ..." : clean;
}

}  // namespace gpups::comm
