// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/handshake.hpp"

#include <fmt/core.h>

#include "comm/base/serialization.hpp"
#include "comm/bootstrap/hmac.hpp"

namespace gpups::comm {
namespace {

constexpr std::string_view kMagic = "gpupsjob";

}  // namespace

std::string make_handshake(std::uint32_t protocol) {
  Writer writer;
  writer.put<std::uint32_t>(protocol);
  return std::string(kMagic) + writer.take() + random_bytes(kHandshakeBytes - kMagic.size() - sizeof protocol);
}

std::string handshake_error(std::string_view incoming) {
  std::string_view const magic = incoming.substr(0, kMagic.size());
  if (magic != kMagic.substr(0, magic.size())) return "it is not a gpups process";
  if (incoming.size() < kMagic.size() + sizeof kJoinProtocol) return {};
  auto const protocol = Reader(incoming.substr(kMagic.size())).get<std::uint32_t>();
  if (protocol == kJoinProtocol) return {};
  return fmt::format("it runs another version of gpups: its join protocol is {}, not {}", protocol, kJoinProtocol);
}

std::string session_key(std::string_view token, std::string_view client_handshake, std::string_view server_handshake) {
  return hmac(token, std::string("gpups session").append(client_handshake).append(server_handshake));
}

}  // namespace gpups::comm
