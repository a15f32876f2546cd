// SPDX-License-Identifier: Apache-2.0
// The instructions of PTX: which function executes each mnemonic. The decoder gives registers to the operands in their
// order: d (and d2 for "d|p"), a, b, c, e. An address in brackets takes the place of a, so the value that a store
// writes is b. Vectors are in Instruction::vector.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tests/emulator/ptx/program.hpp"
#include "tests/emulator/ptx/statement.hpp"

namespace gpups::emulator {

// Completes the instruction for the modifiers of its statement, and returns the function that executes it; null if the
// variant is not supported.
using Select = Execute (*)(Statement const&, Instruction&);
using Rules = std::map<std::string, Select>;

Rules const& arithmetic_rules();
Rules const& bit_rules();
Rules const& comparison_rules();
Rules const& conversion_rules();
Rules const& memory_rules();
Rules const& control_rules();
Rules const& warp_rules();

// Returns the rule of a mnemonic, or null.
Select find_rule(std::string const& mnemonic);

// Execute instructions that the decoder makes itself: reads a special register (Instruction::operation is its number),
// computes an address, negates a predicate, jumps to Instruction::target or to one of its targets, and calls and
// returns from device functions.
Outcome read_special_register(Thread& thread, Instruction const& instruction);
Outcome compute_address(Thread& thread, Instruction const& instruction);
Outcome negate_predicate(Thread& thread, Instruction const& instruction);
Outcome jump(Thread& thread, Instruction const& instruction);
Outcome jump_indexed(Thread& thread, Instruction const& instruction);
Outcome call_function(Thread& thread, Instruction const& instruction);
Outcome return_from_function(Thread& thread, Instruction const& instruction);
// Throws KernelError: the instruction is not supported.
Outcome fault_unsupported(Thread& thread, Instruction const& instruction);

// Returns the number of a special register, such as "%tid.x"; -1 if there is none.
int special_register(std::string const& name);

}  // namespace gpups::emulator
