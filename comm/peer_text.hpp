// SPDX-License-Identifier: Apache-2.0
// Words of another rank, made fit for an error message or a terminal of this one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpups::comm {

inline constexpr std::size_t kPeerTextBytesMax = 1000;

// The text with a question mark for each control character, cut where it is longer than that.
std::string peer_text(std::string_view text, std::size_t bytes_max = kPeerTextBytesMax);

}  // namespace gpups::comm
