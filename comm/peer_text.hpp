// SPDX-License-Identifier: Apache-2.0
// Makes text from another rank safe to print in error messages and on terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpups::comm {

inline constexpr std::size_t kPeerTextBytesMax = 1000;

// Returns the text with each control character replaced by a question mark, and cut after `bytes_max` bytes.
std::string peer_text(std::string_view text, std::size_t bytes_max = kPeerTextBytesMax);

}  // namespace gpups::comm
