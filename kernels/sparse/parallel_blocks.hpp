// SPDX-License-Identifier: Apache-2.0
// Runs work on blocks in parallel on the host, in a few parts with their own memory.
#pragma once

#include <algorithm>

#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"

namespace gpups::kernels {

// Returns the number of parts for this many blocks.
inline std::size_t parts_of(HostExec ex, std::size_t blocks) {
  return std::min<std::size_t>(blocks, ex.arena->threads() == 1 ? 1 : 4 * ex.arena->threads());
}

// Calls body(part, first, last) with the blocks of each part, which are contiguous and in order.
template <class Body>
void parallel_parts(HostExec ex, std::size_t blocks, Body body) {
  std::size_t const parts = parts_of(ex, blocks);
  ex.arena->blocks(parts, [&](std::size_t part) { body(part, part * blocks / parts, (part + 1) * blocks / parts); });
}

// Calls body(memory, block) for each block < blocks; each part has its own `memory`, of type Memory.
template <class Memory, class Body>
void parallel_blocks(HostExec ex, std::size_t blocks, Body body) {
  parallel_parts(ex, blocks, [&](std::size_t, std::size_t first, std::size_t last) {
    Memory memory;
    for (std::size_t b = first; b < last; ++b) body(memory, b);
  });
}

}  // namespace gpups::kernels
