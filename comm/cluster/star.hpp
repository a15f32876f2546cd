// SPDX-License-Identifier: Apache-2.0
// The watch over the connections by which the ranks have joined: a star with rank 0 in its middle.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/cluster/link.hpp"
#include "comm/cluster/watch.hpp"

namespace gpups::comm {

// links: for rank 0 one to each rank, in rank order, of which the first counts for nothing; for others the one to rank
// 0.
std::unique_ptr<Watch> make_star(Rank mine, std::uint32_t size, std::vector<Link> links, WatchOptions const& options);

}  // namespace gpups::comm
