// SPDX-License-Identifier: Apache-2.0
// Connects the devices of all ranks of a group by a device fabric, such as NCCL.
#pragma once

#include <functional>
#include <memory>

#include "comm/group/group_impl.hpp"
#include "comm/nccl/connect.hpp"

namespace gpups::comm {

// Negotiates a fabric over the group's transport; see Group::wait_connect_devices(). use: called with the fabric of
// this rank, if there is one, before any rank sends data. Returns what was agreed. Blocks. Collective.
NegotiatedFabric wait_connect_fabric(Group::Impl& group, Device device, ConnectOptions const& options,
                                     std::function<void(std::shared_ptr<DeviceFabric>)> const& use);

}  // namespace gpups::comm
