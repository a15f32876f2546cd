// SPDX-License-Identifier: Apache-2.0
// Groups whose ranks are threads of this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/group/group_impl.hpp"
#include "comm/transport/local_network.hpp"

namespace gpups::comm {

// What a group of `ranks` is made of.
std::vector<std::shared_ptr<Group::Impl>> make_thread_group(
    int ranks, std::shared_ptr<LocalNetwork> const& network,
    std::function<std::unique_ptr<ProgressDriver>(Rank)> const& make_driver);

// Digest of all events so far in the order in which they happened, messages with their bytes. REQUIRES: a simulated
// group, none of whose ranks is running.
std::uint64_t event_digest(Group const& group);

}  // namespace gpups::comm
