// SPDX-License-Identifier: Apache-2.0
// A fault that is put into device code, to see whether tests find it. GPUPS_EMULATOR_MUTATION is KIND, or KIND:TEXT for
// kernels whose names contain TEXT. tests/emulator/tests/mutations.py uses it.
#pragma once

#include <cstdint>
#include <string>

namespace gpups::emulator {

enum class Mutation : std::uint8_t {
  kNone,
  kBarrier,  // "barrier": threads of a block do not wait at barriers, so they race
  kMask,     // "mask": shuffles and votes have the mask of half a warp
  kAtomic,   // "atomic": atom.add of integers becomes a load, an addition and a store
  kEvent,    // "event": streams do not wait for events
};

// Returns the fault of the environment. Ends the process if there is no such fault.
Mutation mutation();

// Returns the text of a PTX module with the fault in its kernels.
std::string mutated(std::string ptx);

}  // namespace gpups::emulator
