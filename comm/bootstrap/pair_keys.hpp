// SPDX-License-Identifier: Apache-2.0
// The secrets by which each two ranks of a job know each other's data: rank 0 makes them and hands them out at the
// join.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/keyed_hash.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// A key that nobody can guess.
HashKey random_key();

// The keys of one rank, by other rank. They follow from `all`, which stays with who makes them.
std::vector<HashKey> pair_keys(HashKey const& all, Rank rank, std::size_t ranks);

// So that who reads along without the session key learns nothing of them. A session key hides one list.
std::string encrypt_keys(std::string_view session_key, std::vector<HashKey> const& keys);
// Throws WireError where it is no list of keys.
std::vector<HashKey> decrypt_keys(std::string_view session_key, std::string_view ciphertext);

}  // namespace gpups::comm
