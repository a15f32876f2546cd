// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/route_coding.hpp"

#include "comm/base/serialization.hpp"

namespace gpups::cache {
namespace {

std::size_t bitmap_bytes(std::size_t rows) { return (rows + 7) / 8; }

}  // namespace

std::uint64_t encode_route(std::span<Rank const> owners, std::span<Rank const> expected, int ranks,
                           std::vector<std::uint8_t>& wire) {
  std::uint64_t others = 0;
  std::size_t const bitmap = wire.size();
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == expected[i]) continue;
    if (others++ == 0) wire.resize(bitmap + bitmap_bytes(owners.size()), 0);
    wire[bitmap + i / 8] |= static_cast<std::uint8_t>(1U << i % 8);
    wire.push_back(static_cast<std::uint8_t>(number(owners[i])));
    if (ranks > 256) wire.push_back(static_cast<std::uint8_t>(number(owners[i]) >> 8));
  }
  return others;
}

std::vector<Rank> decode_route(std::string_view& wire, std::span<Rank const> expected, std::uint64_t others,
                               int ranks) {
  std::vector<Rank> owners(expected.begin(), expected.end());
  if (others == 0) return owners;
  std::size_t const size = route_bytes(owners.size(), others, ranks);
  if (others > owners.size() || wire.size() < size) throw comm::SerializationError("fewer bytes than a route needs");
  auto const byte = [&](std::size_t at) { return static_cast<std::uint8_t>(wire[at]); };
  std::size_t at = bitmap_bytes(owners.size());
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if ((byte(i / 8) >> i % 8 & 1) == 0) continue;
    if (at == size) throw comm::SerializationError("a route with more rows than it announces");
    std::uint32_t owner = byte(at++);
    if (ranks > 256) owner |= std::uint32_t{byte(at++)} << 8;
    if (owner >= static_cast<std::uint32_t>(ranks))
      throw comm::SerializationError("a route to a rank that does not exist");
    owners[i] = Rank{owner};
  }
  if (at != size) throw comm::SerializationError("a route with fewer rows than it announces");
  wire.remove_prefix(size);
  return owners;
}

}  // namespace gpups::cache
