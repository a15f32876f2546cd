// SPDX-License-Identifier: Apache-2.0
// Messages between threads of one process. Ends may be used and destroyed by different threads; one that is destroyed
// before it has left leaves in error.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/local_network.hpp"
#include "comm/transport/transport.hpp"

namespace gpups::comm {

// One end for each rank. network: what messages travel through; null: they arrive at once.
std::vector<std::unique_ptr<Transport>> make_local_transports(int ranks,
                                                              std::shared_ptr<LocalNetwork> network = nullptr);

}  // namespace gpups::comm
