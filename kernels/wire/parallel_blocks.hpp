// SPDX-License-Identifier: Apache-2.0
// Work on the blocks of a range by a few parts of the host's threads, each with memory of its own.
#pragma once

#include <algorithm>

#include "kernels/arena.hpp"
#include "kernels/space.hpp"

namespace gpups::kernels {

// How many parts work on blocks is cut into.
inline std::size_t parts_of(HostExec ex, std::size_t blocks) {
  return std::min<std::size_t>(blocks, ex.arena->threads() == 1 ? 1 : 4 * ex.arena->threads());
}

// Calls body(part, first, last) for each part's blocks; part 0 has the first ones, and so on.
template <class Body>
void parallel_parts(HostExec ex, std::size_t blocks, Body body) {
  std::size_t const parts = parts_of(ex, blocks);
  ex.arena->blocks(parts, [&](std::size_t part) { body(part, part * blocks / parts, (part + 1) * blocks / parts); });
}

// Calls body(memory, block) for each block < blocks; `memory` is a Memory of whoever calls.
template <class Memory, class Body>
void parallel_blocks(HostExec ex, std::size_t blocks, Body body) {
  parallel_parts(ex, blocks, [&](std::size_t, std::size_t first, std::size_t last) {
    Memory memory;
    for (std::size_t b = first; b < last; ++b) body(memory, b);
  });
}

}  // namespace gpups::kernels
