// SPDX-License-Identifier: Apache-2.0
// A group whose ranks are processes, joined over UCX.
#pragma once

#include <memory>

#include "comm/cluster/join.hpp"
#include "comm/group_impl.hpp"
#include "comm/ucx/link.hpp"

namespace gpups::comm {

// The membership of this process.
std::shared_ptr<Group::Impl> group_of_processes(Rank me, std::unique_ptr<UcxLink> link, Joined joined);

}  // namespace gpups::comm
