// SPDX-License-Identifier: Apache-2.0
// The ranks of a group agree on whether a lane connects their devices: that of all of them, or of none.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "comm/payload/lane.hpp"
#include "comm/talk.hpp"

namespace gpups::comm {

// What a rank says of itself.
struct LaneOffer {
  std::string place;    // of its device, the same for two ranks that share it; empty: the host, which needs no lane
  std::string why_not;  // it can have none, as in "its build has no NCCL"; empty: it can
};

// How a rank makes its end of one. make_id() and wait_make() may throw Error.
class LaneMaker {
 public:
  virtual ~LaneMaker() = default;
  virtual LaneOffer offer() const = 0;
  virtual std::string make_id() = 0;  // of the lane: rank 0's is given to all
  virtual std::shared_ptr<Lane> wait_make(std::string const& id, Rank me, int ranks) = 0;
};

struct AgreedLane {
  std::shared_ptr<Lane> lane{};
  std::string why_not{};  // in words for a log; empty: there is one, or nothing to connect
};

// Why there is no lane between ranks that say this, by rank; empty: there can be one.
std::string no_lane_between(std::span<LaneOffer const> offers);

// All ranks call it, and get a lane each or the same reason. Where making it fails on one of them, none has one. Throws
// PeerError where a rank is lost, does not come or says what is no offer.
AgreedLane wait_agree_on_lane(Talk& talk, LaneMaker& maker);

}  // namespace gpups::comm
