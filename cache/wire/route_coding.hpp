// SPDX-License-Identifier: Apache-2.0
// The encoding of a route: for each row of an announced part, whether it is away from its home, and the owner of each
// row that is. A part with rows that are away has a bitmap of all of its rows, in whole bytes, and then the
// ranks of the owners, 2 bytes each. Other parts have no bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::cache {

// Returns the bytes of the route of a part with `rows` rows, of which `away` are away.
constexpr std::uint64_t route_bytes(std::uint64_t rows, std::uint64_t away) {
  return away == 0 ? 0 : (rows + 7) / 8 + 2 * away;
}

// Appends the route of a part to `wire`. owners: of each row. Returns the number of rows that `home` does not own; if
// there is none, appends nothing.
std::uint64_t encode_route(std::span<Rank const> owners, Rank home, std::vector<std::uint8_t>& wire);

// Decodes the route of a part with `rows` rows, of which `away` are away, and removes it from the front of `wire`.
// Returns the owner of each row. Throws comm::WireError for invalid bytes, and for owners that are not below `ranks`.
std::vector<Rank> decode_route(std::string_view& wire, std::uint64_t rows, std::uint64_t away, Rank home, int ranks);

}  // namespace gpups::cache
