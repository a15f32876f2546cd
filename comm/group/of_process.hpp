// SPDX-License-Identifier: Apache-2.0
// Groups whose ranks are threads of this process.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/group_impl.hpp"
#include "comm/network.hpp"

namespace gpups::comm {

// Throws Error where the number is out of range.
void check_ranks(int ranks);

// What a group of `ranks` is made of.
std::vector<std::shared_ptr<Group::Impl>> group_of_process(
    int ranks, std::shared_ptr<Network> const& network,
    std::function<std::unique_ptr<Turner>(Rank)> const& make_turner);

std::vector<Group> as_groups(std::vector<std::shared_ptr<Group::Impl>> const& impls);

}  // namespace gpups::comm
