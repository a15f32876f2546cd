// SPDX-License-Identifier: Apache-2.0
// Groups whose ranks are threads of this process, over real or simulated time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/group/group_impl.hpp"
#include "comm/transport/transport.hpp"

namespace gpups::comm {

// Returns the implementations of a group of `ranks`, by rank. network: null, or that of a simulation. Throws Error if
// the number is out of range.
std::vector<std::shared_ptr<Group::Impl>> make_thread_group(
    int ranks, std::shared_ptr<LocalNetwork> const& network,
    std::function<std::unique_ptr<ProgressDriver>(Rank)> const& make_driver);

}  // namespace gpups::comm
