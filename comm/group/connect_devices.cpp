// SPDX-License-Identifier: Apache-2.0
#include "comm/group/connect_devices.hpp"

#include <utility>

#include "comm/transport/control_channel.hpp"

namespace gpups::comm {

NegotiatedFabric wait_connect_fabric(Group::Impl& group, Device device, ConnectOptions const& options,
                                     std::function<void(std::shared_ptr<DeviceFabric>)> const& use) {
  constexpr double kNcclTimeout_s = 120;
  ControlChannel channel(*group.transport, options.timeout_s);
  auto agreed = wait_connect_nccl(channel, device, options.nccl, kNcclTimeout_s);
  if (agreed.fabric != nullptr) use(agreed.fabric);
  channel.wait_allgather({});  // no rank sends data before all ranks have replaced their transports
  if (auto rest = channel.take_unread(); !rest.empty()) {
    group.transport = std::make_unique<ReplayingTransport>(std::move(group.transport), std::move(rest));
  }
  return agreed;
}

}  // namespace gpups::comm
