// SPDX-License-Identifier: Apache-2.0
// Core affinity: the cores of this process, and the cores that each rank of a machine uses.
#pragma once

#include <string>
#include <vector>

namespace gpups::comm {

// Convert a set of cores from and to text such as "0-3,8", ascending.
std::vector<int> parse_core_list(std::string const& text);  // throws Error for invalid text
std::string format_core_list(std::vector<int> const& cores);

// Returns the cores on which this process may run now.
std::vector<int> allowed_cores();

// Returns how many of these cores each of `ranks` ranks gets if they share them evenly; 0: less than one.
int cores_per_rank(int ranks);

// Returns the same cores, ordered so that neighbours share as much as possible (hardware threads of a core, caches,
// memory), so that a contiguous slice suits a rank. Uses hwloc if the build has it; else ascending.
std::vector<int> order_by_locality(std::vector<int> cores);

// Returns the cores for each rank of one machine. allowed: the allowed cores of each rank, ordered by
// order_by_locality(). near: the cores near the device of each rank; empty if it has no device or they are unknown. A
// rank whose set differs from all others was bound by its launcher, and keeps its set. Ranks with equal sets divide the
// set evenly into contiguous slices, preferably near their devices; if the set has fewer cores than ranks, each keeps
// the whole set. A pure function.
std::vector<std::vector<int>> partition_cores(std::vector<std::vector<int>> const& allowed,
                                              std::vector<std::vector<int>> const& near);

// Returns the cores near each CUDA device that this process sees, such as "0-31;32-63"; the list of a device is empty
// if the system does not have it.
std::string cores_near_gpus();
// Returns the cores near the device of a rank, from cores_near_gpus() of its process: if it sees several devices, that
// with its number on the machine. Empty if there is no device, or the text is not valid.
std::vector<int> cores_near_rank(std::string const& near_gpus, int local_rank);

// Binds this thread, and threads that it starts later, to these cores. Throws Error if the system rejects that.
void bind_to_cores(std::vector<int> const& cores);

}  // namespace gpups::comm
