// SPDX-License-Identifier: Apache-2.0
// The barriers of a block, __syncthreads() among them.
#pragma once

#include "tests/emulator/machine/thread.hpp"

namespace gpups::emulator {

// Lets the threads continue that wait at a barrier at which enough threads have arrived. Returns whether there was one.
bool finish_barriers(Block& block);

}  // namespace gpups::emulator
