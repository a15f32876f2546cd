// SPDX-License-Identifier: Apache-2.0
// UCX workers of one process that are connected to each other, for tests.
#pragma once

#include <memory>
#include <vector>

#include "comm/ucx/worker.hpp"

namespace gpups::comm {

// Creates the workers, in rank order. A thread makes progress for all of them, as separate processes would, until the
// last one is destroyed.
std::vector<std::shared_ptr<UcxWorker>> make_local_ucx_workers(int ranks);

}  // namespace gpups::comm
