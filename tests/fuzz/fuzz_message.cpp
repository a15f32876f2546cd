// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message of a channel: they are rejected, or are encoded as the same bytes again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cache/wire/message.hpp"
#include "comm/base/peer_error.hpp"
#include "comm/base/serialization.hpp"
#include "comm/collectives/collective_channel.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  std::string const bytes(reinterpret_cast<char const*>(data), size);
  std::string const text = comm::peer_text(bytes);
  if (text.size() > comm::kPeerTextBytesMax + 4 || text.find('\n') != std::string::npos) std::abort();
  if (bytes.empty()) return 0;
  bool const is_of_store = static_cast<comm::ChannelId>(bytes.front()) == comm::ChannelId::kStore;
  std::string const body = bytes.substr(1);
  try {
    if (is_of_store) {
      auto const message = cache::decode(body);
      if (cache::encode(message) != body) std::abort();
      cache::check_fields(message);
    } else if (comm::encode(comm::decode_collective(body)) != body) {
      std::abort();
    }
  } catch (comm::SerializationError const&) {  // rejected
  }
  return 0;
}
