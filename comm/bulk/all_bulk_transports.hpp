// SPDX-License-Identifier: Apache-2.0
// Creates every kind of bulk transport, and lists those that can connect ranks of one process, for conformance tests.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/bulk/device_fabric.hpp"
#include "comm/transport/local_network.hpp"
#include "comm/ucx/active_messages.hpp"

namespace gpups::comm {

// Creates the transports of ranks that are threads of one process, in rank order. The receiver copies from the memory
// of the sender, on its own stream, whatever the two devices are. network: carries the announcements of transfers and
// the answers to them; null: they arrive at once.
std::vector<std::unique_ptr<BulkTransport>> make_local_bulk_transports(int ranks,
                                                                       std::shared_ptr<LocalNetwork> network = nullptr);

// Creates the transport of a rank that is a process. Transfers of at most kEagerBytesMax bytes use the eager protocol,
// larger ones the rendezvous protocol. Memory of a GPU is sent through the fabric if both ranks have one, directly if
// UCX can access the GPU, and through staging otherwise. fabric: connects the GPUs of all ranks and sums over them;
// null: there is none.
std::unique_ptr<BulkTransport> make_ucx_bulk_transport(std::shared_ptr<ActiveMessages> ucx,
                                                       std::shared_ptr<DeviceFabric> fabric = nullptr);

// A kind of bulk transport, for tests.
struct BulkTransportFactory {
  std::string_view name;
  // Returns why this kind cannot connect so many ranks on this machine; empty if it can.
  std::string (*lacks)(int ranks);
  // Creates connected transports, in rank order.
  std::vector<std::unique_ptr<BulkTransport>> (*make)(int ranks);
};

std::span<BulkTransportFactory const> all_bulk_transports();

}  // namespace gpups::comm
