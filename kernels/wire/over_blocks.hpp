// SPDX-License-Identifier: Apache-2.0
// Work on the blocks of a range by a few parts of the host's threads, each with memory of its own.
#pragma once

#include <algorithm>

#include "kernels/arena.hpp"
#include "kernels/space.hpp"

namespace gpups::kernels {

// Calls body(memory, block) for each block < blocks; `memory` is a Memory of whoever calls.
template <class Memory, class Body>
void over_blocks(HostExec ex, std::size_t blocks, Body body) {
  std::size_t const parts = std::min<std::size_t>(blocks, ex.arena->threads() == 1 ? 1 : 4 * ex.arena->threads());
  ex.arena->blocks(parts, [&](std::size_t part) {
    Memory memory;
    for (std::size_t b = part * blocks / parts; b < (part + 1) * blocks / parts; ++b) body(memory, b);
  });
}

}  // namespace gpups::kernels
