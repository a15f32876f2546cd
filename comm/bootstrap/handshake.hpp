// SPDX-License-Identifier: Apache-2.0
// The first bytes on a bootstrap connection, in plain text: a magic string, the protocol version and a nonce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpups::comm {

inline constexpr std::uint32_t kJoinProtocol = 2;
inline constexpr std::size_t kHandshakeBytes = 8 + 4 + 32;

// Returns a handshake with a new nonce.
std::string make_handshake(std::uint32_t protocol = kJoinProtocol);

// Returns why the bytes received so far are not a valid handshake, without naming the sender; empty if they may still
// become one, or, from kHandshakeBytes on, if they are one.
std::string handshake_error(std::string_view incoming);

// Returns the key that authenticates the frames of one connection. It can be computed only with the token, and differs
// for each connection.
std::string session_key(std::string_view token, std::string_view client_handshake, std::string_view server_handshake);

}  // namespace gpups::comm
