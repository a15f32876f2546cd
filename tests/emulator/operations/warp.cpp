// SPDX-License-Identifier: Apache-2.0
// The instructions that a warp executes together, see machine/warp_operations.hpp: a lane waits there, with the
// register of its mask in Instruction::e.
#include <cstdint>
#include <utility>

#include "tests/emulator/operations/rules.hpp"

namespace gpups::emulator {
namespace {

Outcome wait_for_warp(Thread&, Instruction const&) { return Outcome::kWarp; }

Execute warp_instruction(Instruction& i, WarpOperation operation, int mode = 0) {
  i.operation = static_cast<std::uint8_t>(operation);
  i.mode = static_cast<std::uint8_t>(mode);
  return wait_for_warp;
}

// shfl.sync.mode d|p, a, b, c, mask
Execute select_shuffle(Statement const& s, Instruction& i) {
  if (!s.has("sync")) return nullptr;
  return warp_instruction(i, WarpOperation::kShuffle, s.has("up") ? 0 : s.has("down") ? 1 : s.has("bfly") ? 2 : 3);
}
// vote.sync.mode d, a, mask
Execute select_vote(Statement const& s, Instruction& i) {
  if (!s.has("sync")) return nullptr;
  i.e = std::exchange(i.b, kNoRegister);
  return warp_instruction(i, WarpOperation::kVote, s.has("ballot") ? 0 : s.has("all") ? 1 : s.has("any") ? 2 : 3);
}
// match.mode.sync d|p, a, mask
Execute select_match(Statement const& s, Instruction& i) {
  i.type = s.type();
  i.e = std::exchange(i.b, kNoRegister);
  if (i.type == Type::kNone) i.type = s.has("b32") ? Type::kB32 : Type::kB64;
  return warp_instruction(i, WarpOperation::kMatch, s.has("all") ? 1 : 0);
}
Execute select_active_mask(Statement const&, Instruction& i) { return warp_instruction(i, WarpOperation::kActiveMask); }
// redux.sync.op.type d, a, mask
Execute select_reduce(Statement const& s, Instruction& i) {
  i.type = s.type();
  if (i.type == Type::kF32) return nullptr;
  i.e = std::exchange(i.b, kNoRegister);
  return warp_instruction(i, WarpOperation::kReduce,
                          s.has("add")   ? 0
                          : s.has("min") ? 1
                          : s.has("max") ? 2
                          : s.has("and") ? 3
                          : s.has("or")  ? 4
                                         : 5);
}
// elect.sync d|p, mask
Execute select_elect(Statement const&, Instruction& i) {
  i.e = std::exchange(i.a, kNoRegister);
  return warp_instruction(i, WarpOperation::kElect);
}

}  // namespace

Rules const& warp_rules() {
  static Rules const rules{{"shfl", select_shuffle},           {"vote", select_vote},    {"match", select_match},
                           {"activemask", select_active_mask}, {"redux", select_reduce}, {"elect", select_elect}};
  return rules;
}

Select find_rule(std::string const& mnemonic) {
  for (auto const* const rules : {&arithmetic_rules(), &bit_rules(), &comparison_rules(), &conversion_rules(),
                                  &memory_rules(), &control_rules(), &warp_rules()}) {
    if (auto const found = rules->find(mnemonic); found != rules->end()) return found->second;
  }
  return nullptr;
}

}  // namespace gpups::emulator
