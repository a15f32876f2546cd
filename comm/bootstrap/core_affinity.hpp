// SPDX-License-Identifier: Apache-2.0
// Which cores each rank of a machine takes.
#pragma once

#include <string>
#include <vector>

namespace gpups::comm {

// Sets of cores as text: "0-3,8", ascending.
std::vector<int> parse_core_list(std::string const& text);  // throws Error for other text
std::string format_core_list(std::vector<int> const& cores);

// The cores that this process may run on now.
std::vector<int> allowed_cores();

// How many of them each has where so many ranks share them; 0: not one.
int cores_per_rank(int ranks);

// The same cores, ordered so that neighbours share as much as possible (hardware threads of a core, caches, memory): a
// contiguous share is a good place for a rank. By hwloc, where the build has it; else ascending.
std::vector<int> order_by_locality(std::vector<int> cores);

// What each of the ranks of one machine takes. allowed: for each rank, ordered as above. near: for each rank, the cores
// that are near its device; empty where there is none or nobody knows. A rank whose set no other rank has was bound
// by its launcher, and keeps it. Ranks with the same set share it, each from what is near its device,
// contiguously and evenly; where there are fewer cores than ranks, each keeps all of them. Pure.
std::vector<std::vector<int>> partition_cores(std::vector<std::vector<int>> const& allowed,
                                              std::vector<std::vector<int>> const& near);

// Cores near a CUDA device by its PCI address; empty where the machine does not say.
std::vector<int> cores_near_gpu(int device);

// Binds this thread, and those that it starts from now on, to these cores. Throws Error where that is rejected.
void bind_to_cores(std::vector<int> const& cores);

}  // namespace gpups::comm
