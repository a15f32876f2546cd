// SPDX-License-Identifier: Apache-2.0
// The instructions that the lanes of a mask execute together: shuffles, votes, matches, reductions and syncwarp.
#pragma once

#include <array>
#include <cstdint>

#include "tests/emulator/machine/thread.hpp"

namespace gpups::emulator {

// The threads of one warp; null beyond the end of the block.
using Lanes = std::array<Thread*, kWarpThreads>;
Lanes lanes_of(Block& block, std::uint32_t warp);

// Executes the warp instructions for which all lanes of the mask have arrived, and lets these lanes run again. Returns
// whether there was one. none_runs: no thread of the block can run, so activemask has all of its lanes. Throws
// KernelError if a lane is not in the mask that it gives.
bool finish_warp_instructions(Block& block, std::uint32_t warp, bool none_runs);

}  // namespace gpups::emulator
