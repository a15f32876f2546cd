// SPDX-License-Identifier: Apache-2.0
// Bulk data between threads of one process: the receiver copies straight from the sender's memory, on its own stream,
// whatever the two devices are.
#pragma once

#include <memory>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/transport/local_network.hpp"

namespace gpups::comm {

// One end for each rank. network: what offers and their answers travel through; null: they arrive at once.
std::vector<std::unique_ptr<BulkTransport>> make_local_bulk_transports(int ranks,
                                                                       std::shared_ptr<LocalNetwork> network = nullptr);

}  // namespace gpups::comm
