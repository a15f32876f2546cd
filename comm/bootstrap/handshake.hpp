// SPDX-License-Identifier: Apache-2.0
// The first bytes on a connection, in clear: what this is, which protocol it speaks, and a number used once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpups::comm {

inline constexpr std::uint32_t kJoinProtocol = 2;
inline constexpr std::size_t kHandshakeBytes = 8 + 4 + 32;

std::string make_handshake(std::uint32_t protocol = kJoinProtocol);

// What is wrong with the first bytes that came, in words that do not name the one who sent them; empty: nothing yet, or
// nothing at all once kHandshakeBytes are there.
std::string handshake_error(std::string_view incoming);

// Seals the frames of one connection. Only who knows the token can make it, and it is never the same twice.
std::string session_key(std::string_view token, std::string_view client_handshake, std::string_view server_handshake);

}  // namespace gpups::comm
