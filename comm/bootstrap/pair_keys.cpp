// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/pair_keys.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/base/serialization.hpp"
#include "comm/bootstrap/authentication.hpp"

namespace gpups::comm {
namespace {

// Exclusive or with a key stream, the HMAC of a block counter with the session key; its own inverse.
std::string mask(std::string_view session_key, std::string text) {
  for (std::size_t at = 0, block = 0; at < text.size(); at += kHmacBytes, ++block) {
    Writer counter;
    counter.put<std::uint64_t>(block);
    std::string const pad = hmac(session_key, std::string("gpups pair keys").append(counter.body()));
    std::size_t const end = std::min(text.size(), at + kHmacBytes);
    for (std::size_t i = at; i < end; ++i) text[i] = static_cast<char>(text[i] ^ pad[i - at]);
  }
  return text;
}

}  // namespace

HashKey random_key() {
  HashKey key;
  std::memcpy(key.data(), random_bytes(sizeof key).data(), sizeof key);
  return key;
}

std::vector<HashKey> pair_keys(HashKey const& all, Rank rank, std::size_t ranks) {
  std::vector<HashKey> keys;
  for (std::uint64_t other = 0; other < ranks; ++other) {
    auto const pair = std::minmax({std::uint64_t{number(rank)}, other});
    auto const half = [&](std::uint64_t which) { return keyed_hash(all, std::array{pair.first, pair.second, which}); };
    keys.push_back({half(0), half(1)});
  }
  return keys;
}

std::string encrypt_keys(std::string_view session_key, std::vector<HashKey> const& keys) {
  std::string text(keys.size() * sizeof(HashKey), '\0');
  std::memcpy(text.data(), keys.data(), text.size());
  return mask(session_key, std::move(text));
}

std::vector<HashKey> decrypt_keys(std::string_view session_key, std::string_view ciphertext) {
  if (ciphertext.empty() || ciphertext.size() % sizeof(HashKey) != 0) {
    throw SerializationError(
        "a list of pair keys has a wrong size (ranks could not authenticate each other): run the same build on all "
        "ranks");
  }
  std::string const text = mask(session_key, std::string(ciphertext));
  std::vector<HashKey> keys(text.size() / sizeof(HashKey));
  std::memcpy(keys.data(), text.data(), text.size());
  return keys;
}

}  // namespace gpups::comm
