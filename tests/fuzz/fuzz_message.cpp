// SPDX-License-Identifier: Apache-2.0
// Any bytes are refused, or are a message that is written as just these bytes again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cache/message.hpp"
#include "comm/peer_text.hpp"
#include "comm/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  std::string const bytes(reinterpret_cast<char const*>(data), size);
  std::string const text = comm::peer_text(bytes);
  if (text.size() > comm::kPeerTextBytesMax + 4 || text.find('\n') != std::string::npos) std::abort();
  try {
    auto const message = cache::decode(bytes);
    if (cache::encode(message) != bytes) std::abort();
    cache::check_fields(message);
  } catch (comm::WireError const&) {  // refused
  }
  return 0;
}
