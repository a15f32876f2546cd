// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/route_coding.hpp"

#include <algorithm>
#include <cstring>

#include "comm/wire.hpp"

namespace gpups::cache {
namespace {

std::size_t bitmap_bytes(std::size_t rows) { return (rows + 7) / 8; }

}  // namespace

std::uint64_t encode_route(std::span<Rank const> owners, Rank home, std::vector<std::uint8_t>& wire) {
  auto const away = static_cast<std::uint64_t>(
      std::count_if(owners.begin(), owners.end(), [=](Rank owner) { return owner != home; }));
  if (away == 0) return 0;
  std::size_t const bitmap = wire.size();
  wire.resize(bitmap + bitmap_bytes(owners.size()), 0);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == home) continue;
    wire[bitmap + i / 8] |= static_cast<std::uint8_t>(1U << i % 8);
    wire.push_back(static_cast<std::uint8_t>(number(owners[i])));
    wire.push_back(static_cast<std::uint8_t>(number(owners[i]) >> 8));
  }
  return away;
}

std::vector<Rank> decode_route(std::string_view& wire, std::uint64_t rows, std::uint64_t away, Rank home, int ranks) {
  std::vector<Rank> owners(rows, home);
  if (away == 0) return owners;
  std::size_t const bitmap = bitmap_bytes(rows);
  if (away > rows || wire.size() < route_bytes(rows, away)) throw comm::WireError("fewer bytes than a route needs");
  auto const byte = [&](std::size_t at) { return static_cast<std::uint8_t>(wire[at]); };
  std::size_t at = bitmap;
  for (std::size_t i = 0; i < rows; ++i) {
    if ((byte(i / 8) >> i % 8 & 1) == 0) continue;
    if (at == bitmap + 2 * away) throw comm::WireError("a route with more rows than it announces");
    auto const owner = static_cast<std::uint32_t>(byte(at) | byte(at + 1) << 8);
    if (owner >= static_cast<std::uint32_t>(ranks)) throw comm::WireError("a route to a rank that does not exist");
    owners[i] = Rank{owner};
    at += 2;
  }
  if (at != bitmap + 2 * away) throw comm::WireError("a route with fewer rows than it announces");
  wire.remove_prefix(at);
  return owners;
}

}  // namespace gpups::cache
