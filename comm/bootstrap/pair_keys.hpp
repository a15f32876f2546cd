// SPDX-License-Identifier: Apache-2.0
// One secret key for each pair of ranks, with which the two authenticate their data. Rank 0 makes all keys and sends
// them at the join.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/authentication.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// Returns a cryptographically secure random key.
HashKey random_key();

// Returns the keys of one rank; element r is its key with rank r. They are derived from the master key `all`, which
// never leaves rank 0.
std::vector<HashKey> pair_keys(HashKey const& all, Rank rank, std::size_t ranks);

// Encrypts keys so that they cannot be read without the session key. Use a session key for one list only.
std::string encrypt_keys(std::string_view session_key, std::vector<HashKey> const& keys);
// The inverse of encrypt_keys(). Throws SerializationError if the text is no list of keys.
std::vector<HashKey> decrypt_keys(std::string_view session_key, std::string_view ciphertext);

}  // namespace gpups::comm
