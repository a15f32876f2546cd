// SPDX-License-Identifier: Apache-2.0
// The encoding of the owners of the rows of an announced part, as far as they are not those that both ends expect:
// before the step of the batch, the home of the rows; in the step, the owner before it. A part with other owners has a
// bitmap of all of its rows, in whole bytes, and then the ranks of these owners, 1 byte each, or 2 with more than 256
// ranks. Other parts have no bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::cache {

// Returns the bytes of a part with `rows` rows, of which `others` have other owners than expected.
constexpr std::uint64_t route_bytes(std::uint64_t rows, std::uint64_t others, int ranks) {
  return others == 0 ? 0 : (rows + 7) / 8 + (ranks <= 256 ? 1 : 2) * others;
}

// Appends the owners of a part to `wire`. owners, expected: of each row. Returns the number of rows that have another
// owner than expected; if there is none, appends nothing.
std::uint64_t encode_route(std::span<Rank const> owners, std::span<Rank const> expected, int ranks,
                           std::vector<std::uint8_t>& wire);

// Decodes the owners of a part, and removes them from the front of `wire`. others: the number of rows that have another
// owner than expected. Throws comm::SerializationError for invalid bytes, and for owners that are not below `ranks`.
std::vector<Rank> decode_route(std::string_view& wire, std::span<Rank const> expected, std::uint64_t others, int ranks);

}  // namespace gpups::cache
