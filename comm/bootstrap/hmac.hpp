// SPDX-License-Identifier: Apache-2.0
// Message authentication (HMAC-SHA256) and random bytes, by OpenSSL.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpups::comm {

inline constexpr std::size_t kHmacBytes = 32;

// Returns the HMAC-SHA256 of the text, kHmacBytes bytes. Throws Error if OpenSSL fails.
std::string hmac(std::string_view key, std::string_view text);

// Returns whether both are equal, in a time that depends on their lengths only.
bool equal_hmac(std::string_view a, std::string_view b);

// Returns `count` cryptographically secure random bytes. Throws Error if OpenSSL has none.
std::string random_bytes(std::size_t count);

// Returns the bytes in hexadecimal, two digits a byte.
std::string hex(std::string_view bytes);

}  // namespace gpups::comm
