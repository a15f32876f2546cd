// SPDX-License-Identifier: Apache-2.0
// Bulk data between threads of one process: the receiver copies straight from the sender's memory, on its own stream,
// whatever the two devices are.
#pragma once

#include <memory>
#include <vector>

#include "comm/network.hpp"
#include "comm/payload.hpp"

namespace gpups::comm {

// One end for each rank. network: what offers and their answers travel through; null: they arrive at once.
std::vector<std::unique_ptr<Payload>> make_local_payloads(int ranks, std::shared_ptr<Network> network = nullptr);

}  // namespace gpups::comm
