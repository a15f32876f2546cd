// SPDX-License-Identifier: Apache-2.0
// Groups whose ranks are processes, connected by UCX.
#pragma once

#include <memory>

#include "comm/bootstrap/join.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/ucx/worker.hpp"

namespace gpups::comm {

// Connects this process to all ranks that have joined. Blocks. Throws Error, or PeerError if a rank is lost meanwhile.
std::shared_ptr<Group::Impl> make_process_group(Rank me, std::unique_ptr<UcxWorker> ucx, JoinResult joined);

}  // namespace gpups::comm
