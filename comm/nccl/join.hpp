// SPDX-License-Identifier: Apache-2.0
// The ranks of a group connect their GPUs by NCCL, where all of them have one of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/payload/lane.hpp"
#include "comm/talk.hpp"

namespace gpups::comm {

// Why ranks on these devices cannot use NCCL, in words for a log; empty: they can. devices: by rank, as
// device_on_network() names them.
std::string no_nccl_between(std::vector<std::string> const& devices);
// The device and its machine, the same for two ranks that share a GPU. Processes with a NCCL_HOSTID each are on
// machines of their own for NCCL, so that a test can run several of them on one GPU.
std::string device_on_network(Device device);

// All ranks call it. Null, and why on all of them, where some cannot: then data go by the network.
struct NcclJoined {
  std::shared_ptr<Lane> lane;
  std::string why_not;
};
NcclJoined wait_nccl_lane(Talk& talk, Device device);

}  // namespace gpups::comm
