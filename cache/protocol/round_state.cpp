// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round_state.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "gpups/error.hpp"
#include "kernels/gather_elements.hpp"

namespace gpups::cache {

std::vector<Rank> RoundState::others() const {
  std::vector<Rank> all;
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks); ++q) {
    if (Rank{q} != me) all.push_back(Rank{q});
  }
  return all;
}

bool owns_rows_of(PreparedBatch::Impl const& batch, Rank owner) {
  return std::any_of(batch.parts.begin(), batch.parts.end(),
                     [=](auto const& part) { return part.owned_by(owner) > 0; });
}

std::vector<Rank> RoundState::owners_of(PreparedBatch::Impl const& batch) const {
  auto owners = others();
  std::erase_if(owners, [&](Rank owner) { return !owns_rows_of(batch, owner); });
  return owners;
}

void RoundState::throw_peer_error(Rank peer, std::string const& what) const {
  throw PeerError(peer, fmt::format("rank {} {} (rank {} cannot continue): check that all ranks run the same "
                                    "program and configuration",
                                    number(peer), what, number(me)));
}

Array<Key> wait_keys_on_wire(RoundState const& state, PreparedPart const& part, Rank owner) {
  Array<Key> keys(state.stream.device(), part.owned_by(owner));
  auto const positions = part.remote_positions_of(owner, state.me);
  kernels::gather_elements(state.stream, kernels::GatherElements<Key>{part.keys, positions, keys});
  state.stream.wait();
  return keys;
}

}  // namespace gpups::cache
