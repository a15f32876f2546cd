// SPDX-License-Identifier: Apache-2.0
// Decodes the body of a function.
#pragma once

#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {

// Decodes Function::body into Function::code, once. An instruction that the emulator does not support becomes one that
// faults when it is reached. Throws UnsupportedPtx for a body that cannot be read.
void decode(Function& function);

}  // namespace gpups::emulator
