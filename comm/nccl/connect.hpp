// SPDX-License-Identifier: Apache-2.0
// Negotiates whether a device fabric connects the devices of all ranks: either all ranks get one, or none does.
// Connects the GPUs by NCCL, if each rank has a GPU of its own.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "comm/bulk/device_fabric.hpp"
#include "comm/transport/control_channel.hpp"

namespace gpups::comm {

// What a rank sends to the others about its device.
struct FabricOffer {
  std::string place;    // id of the device, equal for ranks that share it; empty: the host, which has no fabric
  std::string why_not;  // why it can have no fabric, such as "its build has no NCCL"; empty: it can
};

// Creates the fabric of a rank. make_id() and wait_make() may throw Error.
class FabricFactory {
 public:
  virtual ~FabricFactory() = default;
  // Returns what this rank sends to the others.
  virtual FabricOffer offer() const = 0;
  // Returns an id of the fabric. Called on rank 0, which sends the id to all ranks.
  virtual std::string make_id() = 0;
  // Returns the fabric of this rank. Blocks until all ranks have called it.
  virtual std::shared_ptr<DeviceFabric> wait_make(std::string const& id, Rank me, int ranks) = 0;
};

// The result: a fabric, or the reason why there is none.
struct NegotiatedFabric {
  std::shared_ptr<DeviceFabric> fabric{};
  std::string why_not{};  // for a log; empty: there is a fabric, or there are no devices to connect
};

// Returns why ranks with these offers, in rank order, can have no fabric; empty if they can.
std::string fabric_obstacle(std::span<FabricOffer const> offers);

// Collective. All ranks get a fabric each, or all get the same reason. If it cannot be created on one rank, no rank has
// one. Throws PeerError if a rank is lost, does not answer or sends an invalid offer.
NegotiatedFabric wait_negotiate_fabric(ControlChannel& channel, FabricFactory& factory);

// Returns the offer of a rank on this device. NCCL treats processes with different values of NCCL_HOSTID as processes
// on different machines, so that tests can run several ranks on one GPU. enabled: whether the user of this rank allows
// NCCL.
FabricOffer nccl_offer(Device device, bool enabled);

// Collective. Returns a fabric on all ranks, or none with the reason if a rank cannot have one; then data travel over
// the network. Blocks until all ranks have answered, and at most `timeout_s` for NCCL.
NegotiatedFabric wait_connect_nccl(ControlChannel& channel, Device device, bool enabled, double timeout_s);

}  // namespace gpups::comm
