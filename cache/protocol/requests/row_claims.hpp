// SPDX-License-Identifier: Apache-2.0
// The claims of Store::localize(): which ranks want to own which rows, and which rows their homes grant them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cache/placement/owner_directory.hpp"
#include "cache/protocol/requests/row_request.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// Return the bytes of a claim, which are keys, and of a grant, which has an element for each key of the claim: the rank
// from which the claimant takes the row, or kNoOwner if it does not get the row or owns it already.
std::string encode_claim(std::span<Key const> keys);
std::string encode_grant(std::span<Rank const> from);

// Return the claim or the grant that another rank has sent. home: this rank. claimed: the keys that this rank has
// claimed. Throw PeerError for bytes that are none, and for keys with another home.
std::vector<Key> decode_claim(Rank claimant, std::string const& bytes, Rank home, int ranks);
std::vector<Rank> decode_grant(Rank home, std::string const& bytes, std::size_t claimed, int ranks);

// What a home decides: the grants to each rank, and the rows that move, with their new entries in the directory.
struct DecidedClaims {
  std::vector<std::vector<Rank>> grants;
  std::vector<Key> moved;
  std::vector<OwnerDirectory::Entry> entries;
};
// Decides claims, and changes nothing; the lowest rank gets a row that several claim. claims: of each rank, for rows of
// this home. Blocks until the stream is done. Throws Error if there are more than kernels::kUniqueKeysMax claims.
DecidedClaims wait_decide(Stream& stream, OwnerDirectory const& directory, std::span<std::vector<Key> const> claims,
                          Clock now);

}  // namespace gpups::cache
