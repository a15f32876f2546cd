// SPDX-License-Identifier: Apache-2.0
// What every rank has to say in one number, so that all decide the same.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"

namespace gpups::comm {

// The numbers, by rank.
CoTask<std::vector<std::uint64_t>> allgather_number(Communicator& comm, std::uint64_t mine);

}  // namespace gpups::comm
