// SPDX-License-Identifier: Apache-2.0
// Connected ends of a UCX network in one process, for tests.
#pragma once

#include <memory>
#include <vector>

#include "comm/ucx/worker.hpp"

namespace gpups::comm {

// In rank order. A thread lets all of them progress, as each would in a process of its own, until the last has gone.
std::vector<std::shared_ptr<UcxWorker>> make_local_ucx_workers(int ranks);

}  // namespace gpups::comm
