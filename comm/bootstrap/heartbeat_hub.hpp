// SPDX-License-Identifier: Apache-2.0
// The watch over the connections by which the ranks have joined: rank 0 has one to each other rank.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/failure_detector.hpp"

namespace gpups::comm {

// links: for rank 0 one to each rank, in rank order, of which the first counts for nothing; for others the one to rank
// 0.
std::unique_ptr<FailureDetector> make_heartbeat_hub(Rank mine, std::uint32_t size, std::vector<Connection> connections,
                                                    FailureDetectorOptions const& options);

}  // namespace gpups::comm
