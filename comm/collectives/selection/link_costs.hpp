// SPDX-License-Identifier: Apache-2.0
// What the links between ranks and their cores cost. Costs are measured while all ranks exchange and compute at once,
// so a link or a core that ranks share costs each of them as much as it will in a sum.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"

namespace gpups::comm {

// Seconds.
struct LinkCosts {
  double round_s = 0;  // for a round of messages that are awaited before the next
  double byte_s = 0;   // for a byte sent to others
  double add_s = 0;    // for an element that is added to an array, or written to new memory
  double entry_s = 0;  // for an entry of a sparse stream that is written or added
  double code_s = 0;   // for a number that is converted to few bits with scales, or back

  bool operator==(LinkCosts const&) const = default;
};
inline constexpr std::array kLinkCostMembers{&LinkCosts::round_s, &LinkCosts::byte_s, &LinkCosts::add_s,
                                             &LinkCosts::entry_s, &LinkCosts::code_s};
// Of the cost of an entry: passing over an element of a stream's range, zero or not, as was measured.
inline constexpr double kPassed = 0.05;

// Whether all costs are positive and finite.
inline bool is_possible(LinkCosts const& costs) {
  return std::all_of(kLinkCostMembers.begin(), kLinkCostMembers.end(),
                     [&](auto const cost) { return std::isfinite(costs.*cost) && costs.*cost > 0; });
}

// Measures them. A collective, the same on all ranks: of each cost the slowest rank's. Takes less than 200 ms between a
// few ranks at 1 Gbit/s or more (`bench/goals exchange/fit`), and sends at least 12 times 128 KiB from each rank.
CoTask<LinkCosts> measure_links(Communicator& comm);

}  // namespace gpups::comm
