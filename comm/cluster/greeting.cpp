// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/greeting.hpp"

#include <fmt/core.h>

#include "comm/cluster/secret.hpp"
#include "comm/wire.hpp"

namespace gpups::comm {
namespace {

constexpr std::string_view kMagic = "gpupsjob";

}  // namespace

std::string make_greeting(std::uint32_t protocol) {
  Writer writer;
  writer.put<std::uint32_t>(protocol);
  return std::string(kMagic) + writer.take() + random_bytes(kGreetingBytes - kMagic.size() - sizeof protocol);
}

std::string wrong_greeting(std::string_view incoming) {
  std::string_view const magic = incoming.substr(0, kMagic.size());
  if (magic != kMagic.substr(0, magic.size())) return "it is no gpups process";
  if (incoming.size() < kMagic.size() + sizeof kJoinProtocol) return {};
  auto const protocol = Reader(incoming.substr(kMagic.size())).get<std::uint32_t>();
  if (protocol == kJoinProtocol) return {};
  return fmt::format("it is of another version of gpups: its join protocol is {} and not {}", protocol, kJoinProtocol);
}

std::string session_key(std::string_view token, std::string_view joiner_greeting, std::string_view host_greeting) {
  return proof(token, std::string("gpups session").append(joiner_greeting).append(host_greeting));
}

}  // namespace gpups::comm
