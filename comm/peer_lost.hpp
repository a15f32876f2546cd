// SPDX-License-Identifier: Apache-2.0
// A rank is gone: who, and why, for those who tell others.
#pragma once

#include <fmt/core.h>

#include <string>

#include "gpups/error.hpp"

namespace gpups::comm {

class PeerLost : public PeerError {
 public:
  // why: in words that do not name the rank, such as "its process ended"; empty: it has left regularly.
  PeerLost(Rank peer, std::string const& why)
      : PeerError(peer, why.empty()
                            ? fmt::format("rank {} has left (it takes no more messages): end all ranks at the "
                                          "same step",
                                          number(peer))
                            : fmt::format("rank {} is lost (no step can end without it): {}", number(peer), why)),
        why_(why) {}
  std::string const& why() const { return why_; }

 private:
  std::string why_;
};

}  // namespace gpups::comm
