// SPDX-License-Identifier: Apache-2.0
// The ranks of a group agree on whether a fabric connects their devices: that of all of them, or of none.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "comm/bulk/device_fabric.hpp"
#include "comm/transport/control_channel.hpp"

namespace gpups::comm {

// What a rank says of itself.
struct FabricOffer {
  std::string place;    // of its device, the same for two ranks that share it; empty: the host, which needs no fabric
  std::string why_not;  // it can have none, as in "its build has no NCCL"; empty: it can
};

// How a rank makes its end of one. make_id() and wait_make() may throw Error.
class FabricFactory {
 public:
  virtual ~FabricFactory() = default;
  virtual FabricOffer offer() const = 0;
  virtual std::string make_id() = 0;  // of the fabric: rank 0's is given to all
  virtual std::shared_ptr<DeviceFabric> wait_make(std::string const& id, Rank me, int ranks) = 0;
};

struct NegotiatedFabric {
  std::shared_ptr<DeviceFabric> fabric{};
  std::string why_not{};  // in words for a log; empty: there is one, or nothing to connect
};

// Why there is no fabric between ranks that say this, by rank; empty: there can be one.
std::string fabric_obstacle(std::span<FabricOffer const> offers);

// All ranks call it, and get a fabric each or the same reason. Where making it fails on one of them, none has one.
// Throws PeerError where a rank is lost, does not come or says what is no offer.
NegotiatedFabric wait_negotiate_fabric(ControlChannel& channel, FabricFactory& maker);

}  // namespace gpups::comm
