// SPDX-License-Identifier: Apache-2.0
// Proofs that somebody knows a secret, which never show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpups::comm {

inline constexpr std::size_t kHmacBytes = 32;

// HMAC-SHA256: kHmacBytes bytes.
std::string hmac(std::string_view key, std::string_view text);

// Compares in a time that depends on the lengths only.
bool equal_hmac(std::string_view a, std::string_view b);

// Bytes that nobody can guess.
std::string random_bytes(std::size_t count);

std::string hex(std::string_view bytes);

}  // namespace gpups::comm
