// SPDX-License-Identifier: Apache-2.0
// An allgather of one number per rank, so that all ranks can make the same decision.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"

namespace gpups::comm {

// Returns the numbers of all ranks, by rank. Throws PeerError if a rank sends a message of another size.
CoTask<std::vector<std::uint64_t>> allgather_number(Communicator& comm, std::uint64_t mine);

}  // namespace gpups::comm
