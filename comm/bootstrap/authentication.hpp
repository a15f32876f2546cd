// SPDX-License-Identifier: Apache-2.0
// Message authentication: HMAC-SHA256 and random bytes by OpenSSL, and SipHash for headers of messages.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
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

// SipHash-2-4 of whole words: a 64-bit hash that can be computed only with the key, in about 25 ns. Source: Aumasson
// and Bernstein, "SipHash: a fast short-input PRF" (2012).
using HashKey = std::array<std::uint64_t, 2>;

template <std::size_t Words>
constexpr std::uint64_t keyed_hash(HashKey const& key, std::array<std::uint64_t, Words> const& words) {
  std::uint64_t a = key[0] ^ 0x736f6d6570736575, b = key[1] ^ 0x646f72616e646f6d;
  std::uint64_t c = key[0] ^ 0x6c7967656e657261, d = key[1] ^ 0x7465646279746573;
  auto const rounds = [&](int count) {
    for (; count > 0; --count) {
      a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
      c += d, d = std::rotl(d, 16) ^ c;
      a += d, d = std::rotl(d, 21) ^ a;
      c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
    }
  };
  auto const take = [&](std::uint64_t word) {
    d ^= word;
    rounds(2);
    a ^= word;
  };
  for (std::uint64_t const word : words) take(word);
  take(std::uint64_t{Words * 8 % 256} << 56);
  c ^= 0xff;
  rounds(4);
  return a ^ b ^ c ^ d;
}

}  // namespace gpups::comm
