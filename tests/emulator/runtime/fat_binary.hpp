// SPDX-License-Identifier: Apache-2.0
// The fat binaries that nvcc puts into objects: containers of PTX for several architectures, perhaps compressed.
#pragma once

#include <string>

namespace gpups::emulator {

// Returns the PTX of the fat binary that an object registers. Throws UnsupportedPtx if there is none.
std::string ptx_of(void const* wrapper);

}  // namespace gpups::emulator
