// SPDX-License-Identifier: Apache-2.0
// Counts the latencies of loads from global memory that a thread exposes, in units of one latency. An instruction is
// issued when its operands are there, and the result of a load is there one latency later. An assembler may reorder the
// instructions of a basic block, so all loads of a block whose addresses are known are under way together; it moves no
// load out of its block, nor across a store, an atomic operation or a barrier. The thread leaves a block when all of
// its instructions are issued. Loads whose values no instruction has used do not delay it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {

// The loads of one thread.
class ExposedLoads {
 public:
  // Called before an instruction is executed, or skipped because of its predicate. registers: of its function.
  void before(Register const* registers, Instruction const& instruction, bool is_skipped);
  // Called after an instruction that has loaded from global memory.
  void began(Register const* registers, Instruction const& instruction);
  std::uint32_t count() const { return issued_; }

 private:
  std::uint32_t ready_at(Register const* registers, RegisterId id) const;
  void set_results(Register const* registers, Instruction const& instruction, std::uint32_t time);
  void set_result(Register const* registers, RegisterId id, std::uint32_t time);
  void end_block();

  std::unordered_map<Register const*, std::uint32_t> ready_;  // times after begun_ at which values are there
  std::uint32_t begun_ = 0;                                   // when the current block began
  std::uint32_t issued_ = 0;                                  // when the last instruction was issued
  std::uint32_t now_ = 0;                                     // when the current instruction is issued
};

}  // namespace gpups::emulator
