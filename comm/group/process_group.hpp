// SPDX-License-Identifier: Apache-2.0
// A group whose ranks are processes, joined over UCX.
#pragma once

#include <memory>

#include "comm/bootstrap/join.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/ucx/worker.hpp"

namespace gpups::comm {

// The membership of this process.
std::shared_ptr<Group::Impl> make_process_group(Rank me, std::unique_ptr<UcxWorker> ucx, JoinResult joined);

}  // namespace gpups::comm
