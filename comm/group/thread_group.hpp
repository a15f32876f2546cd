// SPDX-License-Identifier: Apache-2.0
// Groups whose ranks are threads of this process.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/group/group_impl.hpp"
#include "comm/transport/local_network.hpp"

namespace gpups::comm {

// Throws Error where the number is out of range.
void check_ranks(int ranks);

// What a group of `ranks` is made of.
std::vector<std::shared_ptr<Group::Impl>> make_thread_group(
    int ranks, std::shared_ptr<LocalNetwork> const& network,
    std::function<std::unique_ptr<ProgressDriver>(Rank)> const& make_driver);

std::vector<Group> to_groups(std::vector<std::shared_ptr<Group::Impl>> const& impls);

}  // namespace gpups::comm
