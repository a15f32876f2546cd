// SPDX-License-Identifier: Apache-2.0
#include "comm/peer_text.hpp"

#include <algorithm>

namespace gpups::comm {

std::string peer_text(std::string_view text, std::size_t bytes_max) {
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
