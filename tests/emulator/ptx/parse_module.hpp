// SPDX-License-Identifier: Apache-2.0
// Reads the functions and variables of a module.
#pragma once

#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {

// Reads Module::text, once. Allocates and initialises global variables. Bodies of functions are decoded later, see
// decode().
void parse_module(Module& module);

}  // namespace gpups::emulator
