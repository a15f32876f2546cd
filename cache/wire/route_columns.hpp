// SPDX-License-Identifier: Apache-2.0
// The columns of a route, one after another: for each part of a batch, in the ascending order of its keys, the owners
// of its rows before the batch's step, and then those in it, each as far as the route has them (see Route). A rank
// takes 1 byte, or 2 in groups of more than 256.
#pragma once

#include <cstdint>
#include <memory>

#include "cache/wire/message.hpp"
#include "gpups/array.hpp"

namespace gpups::cache {

// The owners of the rows of a part, on the device of the store. Without a column, they are the home, or those before.
struct RouteColumns {
  View<std::uint8_t const> before{}, in_step{};
};
// The columns of all parts of a batch.
struct BatchRoute {
  std::vector<RouteColumns> parts;
  std::shared_ptr<Array<std::uint8_t> const> memory{};
};

// Returns the bytes of a rank's number.
constexpr std::uint32_t rank_bytes(int ranks) { return ranks <= 256 ? 1 : 2; }
// Returns the bytes of the columns of a part with this number of rows.
constexpr std::uint64_t route_bytes(std::uint64_t rows, RoutePart const& part, int ranks) {
  return rows * rank_bytes(ranks) * ((part.away ? 1 : 0) + (part.moves ? 1 : 0));
}
// Returns the columns of a part that begin at `first`.
template <class Byte>
auto route_columns(View<Byte> bytes, std::size_t first, std::uint64_t rows, RoutePart const& part, int ranks) {
  struct Columns {
    View<Byte> before{}, in_step{};
  } columns;
  std::size_t const size = rows * rank_bytes(ranks);
  if (part.away) columns.before = bytes.slice(first, size);
  if (part.moves) columns.in_step = bytes.slice(first + (part.away ? size : 0), size);
  return columns;
}

}  // namespace gpups::cache
