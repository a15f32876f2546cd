// SPDX-License-Identifier: Apache-2.0
// The costs of the links between ranks and of their cores. They are measured while all ranks communicate and compute at
// the same time, so that a shared link or core costs each rank as much as it will in an allreduce.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"

namespace gpups::comm {

// Returns the numbers of all ranks, by rank. Throws PeerError if a rank sends a message of another size.
CoTask<std::vector<std::uint64_t>> allgather_number(Communicator& comm, std::uint64_t mine);

// All costs in seconds.
struct LinkCosts {
  double round_s = 0;  // for a round of messages that all arrive before the next round
  double byte_s = 0;   // for a byte sent to others
  double add_s = 0;    // for an element that is added to an array or written to new memory
  double entry_s = 0;  // for an entry of a sparse stream that is written or added
  double code_s = 0;   // for a number that is converted to a format with scales, or back

  bool operator==(LinkCosts const&) const = default;
};
inline constexpr std::array kLinkCostMembers{&LinkCosts::round_s, &LinkCosts::byte_s, &LinkCosts::add_s,
                                             &LinkCosts::entry_s, &LinkCosts::code_s};
// The cost of passing over one element of the range of a stream, zero or not, as a fraction of entry_s; measured.
inline constexpr double kPassed = 0.05;

// Returns whether all costs are positive and finite.
inline bool is_possible(LinkCosts const& costs) {
  return std::all_of(kLinkCostMembers.begin(), kLinkCostMembers.end(),
                     [&](auto const cost) { return std::isfinite(costs.*cost) && costs.*cost > 0; });
}

// Measures the costs; each is that of the slowest rank, so all ranks get equal results. Collective. Takes less than 200
// ms between a few ranks at 1 Gbit/s or more (`bench/goals exchange/fit`); each rank sends at least 12 times 128 KiB.
CoTask<LinkCosts> measure_links(Communicator& comm);

}  // namespace gpups::comm
