// SPDX-License-Identifier: Apache-2.0
// The ranks of a group connect their GPUs by NCCL, where all of them have one of their own.
#pragma once

#include "comm/bulk/negotiate_fabric.hpp"

namespace gpups::comm {

// What a rank on this device says of itself. Processes with a NCCL_HOSTID each are on machines of their own for NCCL,
// so that a test can run several of them on one GPU. wanted: by this rank's user.
FabricOffer nccl_offer(Device device, bool wanted);

// All ranks call it. Without a fabric on all of them, and why, where some cannot: then data go by the network. Blocks
// for as long as others exchange messages, and `timeout_s` at most for NCCL.
NegotiatedFabric wait_connect_nccl(ControlChannel& channel, Device device, bool wanted, double timeout_s);

}  // namespace gpups::comm
