// SPDX-License-Identifier: Apache-2.0
// Executes a kernel.
#pragma once

#include <array>
#include <cstdint>

#include "tests/emulator/machine/counters.hpp"
#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {

struct LaunchSize {
  std::array<std::uint32_t, 3> grid, block;
  std::uint32_t dynamic_shared_bytes;
};

// Executes all blocks of the kernel, in an order and with interleavings that the options decide. parameters: as
// Function::parameters describes them. Adds to `counts`. Throws KernelError for what a GPU would report: invalid
// accesses, deadlocks, and warp instructions with a wrong mask. REQUIRES: the function was decoded.
void launch(Function const& kernel, LaunchSize const& size, std::uint8_t* parameters, KernelCounts& counts);

}  // namespace gpups::emulator
