// SPDX-License-Identifier: Apache-2.0
// The error for a rank that is lost or has left.
#pragma once

#include <fmt/core.h>

#include <string>

#include "gpups/error.hpp"

namespace gpups::comm {

// A PeerError that keeps the reason apart, so that this rank can report it to other ranks.
class PeerLost : public PeerError {
 public:
  // why: the reason, without the number of the rank, such as "its process ended"; empty: the rank has left in order.
  PeerLost(Rank peer, std::string const& why)
      : PeerError(peer, why.empty()
                            ? fmt::format("rank {} has left (it receives no more messages): end all ranks at the "
                                          "same step",
                                          number(peer))
                            : fmt::format("rank {} is lost (no step can end without it): {}", number(peer), why)),
        why_(why) {}
  std::string const& why() const { return why_; }

 private:
  std::string why_;
};

}  // namespace gpups::comm
