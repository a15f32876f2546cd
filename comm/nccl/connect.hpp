// SPDX-License-Identifier: Apache-2.0
// Connects the GPUs of all ranks by NCCL, if each rank has a GPU of its own.
#pragma once

#include "comm/bulk/negotiate_fabric.hpp"

namespace gpups::comm {

// Returns the offer of a rank on this device. NCCL treats processes with different values of NCCL_HOSTID as processes
// on different machines, so that tests can run several ranks on one GPU. enabled: whether the user of this rank allows
// NCCL.
FabricOffer nccl_offer(Device device, bool enabled);

// Collective. Returns a fabric on all ranks, or none with the reason if a rank cannot have one; then data travel over
// the network. Blocks until all ranks have answered, and at most `timeout_s` for NCCL.
NegotiatedFabric wait_connect_nccl(ControlChannel& channel, Device device, bool enabled, double timeout_s);

}  // namespace gpups::comm
