// SPDX-License-Identifier: Apache-2.0
// Branches, calls, barriers and special registers.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "tests/emulator/machine/thread.hpp"
#include "tests/emulator/operations/rules.hpp"

namespace gpups::emulator {
namespace {

// The names are in the order of the values in read_special_register().
enum class Special : std::uint8_t {
  kThreadX,
  kThreadY,
  kThreadZ,
  kThreadsX,
  kThreadsY,
  kThreadsZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kBlocksX,
  kBlocksY,
  kBlocksZ,
  kLane,
  kWarp,
  kWarps,
  kMaskEqual,
  kMaskUpTo,
  kMaskBelow,
  kMaskFrom,
  kMaskAbove,
  kWarpThreads,
  kDynamicSharedBytes,
  kSharedBytes,
  kClock,
  kMultiprocessor,
  kMultiprocessors,
  kGrid
};
std::map<std::string, Special> const& specials() {
  static std::map<std::string, Special> const names{{"%tid.x", Special::kThreadX},
                                                    {"%tid.y", Special::kThreadY},
                                                    {"%tid.z", Special::kThreadZ},
                                                    {"%ntid.x", Special::kThreadsX},
                                                    {"%ntid.y", Special::kThreadsY},
                                                    {"%ntid.z", Special::kThreadsZ},
                                                    {"%ctaid.x", Special::kBlockX},
                                                    {"%ctaid.y", Special::kBlockY},
                                                    {"%ctaid.z", Special::kBlockZ},
                                                    {"%nctaid.x", Special::kBlocksX},
                                                    {"%nctaid.y", Special::kBlocksY},
                                                    {"%nctaid.z", Special::kBlocksZ},
                                                    {"%laneid", Special::kLane},
                                                    {"%warpid", Special::kWarp},
                                                    {"%nwarpid", Special::kWarps},
                                                    {"%lanemask_eq", Special::kMaskEqual},
                                                    {"%lanemask_le", Special::kMaskUpTo},
                                                    {"%lanemask_lt", Special::kMaskBelow},
                                                    {"%lanemask_ge", Special::kMaskFrom},
                                                    {"%lanemask_gt", Special::kMaskAbove},
                                                    {"WARP_SZ", Special::kWarpThreads},
                                                    {"%dynamic_smem_size", Special::kDynamicSharedBytes},
                                                    {"%total_smem_size", Special::kSharedBytes},
                                                    {"%clock", Special::kClock},
                                                    {"%clock64", Special::kClock},
                                                    {"%globaltimer", Special::kClock},
                                                    {"%smid", Special::kMultiprocessor},
                                                    {"%nsmid", Special::kMultiprocessors},
                                                    {"%gridid", Special::kGrid}};
  return names;
}

// Every read of the clock is later than the one before.
std::uint64_t next_time() {
  static std::uint64_t time = 0;
  return time += 100;
}

std::uint64_t value_of(Special special, Thread const& thread) {
  constexpr std::uint32_t kMultiprocessors = 132;
  Block const& block = *thread.block;
  std::uint32_t const bit = 1U << thread.lane();
  auto const number = static_cast<std::size_t>(special);
  switch (special) {
    case Special::kThreadX:
    case Special::kThreadY:
    case Special::kThreadZ:
      return thread.position[number];
    case Special::kThreadsX:
    case Special::kThreadsY:
    case Special::kThreadsZ:
      return block.size[number - 3];
    case Special::kBlockX:
    case Special::kBlockY:
    case Special::kBlockZ:
      return block.position[number - 6];
    case Special::kBlocksX:
    case Special::kBlocksY:
    case Special::kBlocksZ:
      return block.grid[number - 9];
    case Special::kLane:
      return thread.lane();
    case Special::kWarp:
      return thread.number / kWarpThreads;
    case Special::kWarps:
      return block.warps();
    case Special::kMaskEqual:
      return bit;
    case Special::kMaskUpTo:
      return bit | (bit - 1);
    case Special::kMaskBelow:
      return bit - 1;
    case Special::kMaskFrom:
      return ~(bit - 1);
    case Special::kMaskAbove:
      return ~(bit | (bit - 1));
    case Special::kWarpThreads:
      return kWarpThreads;
    case Special::kDynamicSharedBytes:
      return block.dynamic_shared_bytes;
    case Special::kSharedBytes:
      return block.shared.size();
    case Special::kClock:
      return next_time();
    case Special::kMultiprocessor:
      return block.number % kMultiprocessors;
    case Special::kMultiprocessors:
      return kMultiprocessors;
    default:
      return 0;
  }
}

Outcome wait_at_barrier(Thread&, Instruction const&) { return Outcome::kBarrier; }
Outcome exit_thread(Thread&, Instruction const&) { return Outcome::kExit; }
Outcome yield(Thread&, Instruction const&) { return Outcome::kYield; }
Outcome do_nothing(Thread&, Instruction const&) { return Outcome::kNext; }
Outcome trap(Thread& thread, Instruction const& i) { throw_fault(thread, i, "trap"); }

Execute select_return(Statement const&, Instruction&) { return return_from_function; }
Execute select_exit(Statement const&, Instruction&) { return exit_thread; }
Execute select_trap(Statement const&, Instruction&) { return trap; }
Execute select_yield(Statement const&, Instruction&) { return yield; }
// Fences too: memory is consistent here, and nothing is cached.
Execute select_nothing(Statement const&, Instruction&) { return do_nothing; }

// "bar.sync id{, threads}" and "bar.red.op d, id, {threads,} predicate", see machine/barriers.hpp.
Execute select_barrier(Statement const& s, Instruction& i) {
  if (s.has("warp")) {  // bar.warp.sync mask
    i.operation = static_cast<std::uint8_t>(WarpOperation::kSync);
    i.e = std::exchange(i.d, kNoRegister);
    return [](Thread&, Instruction const&) { return Outcome::kWarp; };
  }
  if (s.has("sync")) {
    i.c = i.a;
    i.b = std::exchange(i.d, kNoRegister);
    i.a = kNoRegister;
    return wait_at_barrier;
  }
  if (!s.has("red")) return nullptr;
  i.mode = s.has("popc") ? 1 : s.has("and") ? 2 : 3;
  RegisterId const id = i.a, second = i.b, third = i.c;
  i.b = id;
  i.a = third != kNoRegister ? third : second;
  i.c = third != kNoRegister ? second : kNoRegister;
  return wait_at_barrier;
}

}  // namespace

int special_register(std::string const& name) {
  auto const found = specials().find(name);
  return found == specials().end() ? -1 : static_cast<int>(found->second);
}

Outcome read_special_register(Thread& thread, Instruction const& i) {
  thread.registers[i.d] = value_of(static_cast<Special>(i.operation), thread);
  return Outcome::kNext;
}

Outcome jump(Thread& thread, Instruction const& i) {
  thread.next = static_cast<std::uint32_t>(i.target);
  return Outcome::kNext;
}
Outcome jump_indexed(Thread& thread, Instruction const& i) {
  auto const index = read<std::uint32_t>(thread, i.a);
  if (index >= i.targets->size()) throw_fault(thread, i, "branch to a target that does not exist");
  thread.next = static_cast<std::uint32_t>((*i.targets)[index]);
  return Outcome::kNext;
}

// The callee gets registers and a frame of its own; its parameters and results are at the beginning of the frame.
Outcome call_function(Thread& thread, Instruction const& i) {
  Function const& callee = *i.call->callee;
  thread.callers.push_back(
      {thread.function, thread.next, thread.registers, thread.frame, i.call.get(), std::move(thread.memory)});
  std::uint8_t const* const caller_frame = thread.frame;
  thread.memory = std::make_unique<CallMemory>(callee);
  thread.registers = thread.memory->registers();
  thread.frame = thread.memory->frame();
  thread.function = &callee;
  thread.next = 0;
  for (auto const& [from, to, bytes] : i.call->arguments) {
    std::memcpy(thread.frame + to, caller_frame + from, static_cast<std::size_t>(bytes));
  }
  return Outcome::kJumped;
}
Outcome return_from_function(Thread& thread, Instruction const&) {
  if (thread.callers.empty()) return Outcome::kExit;
  Frame caller = std::move(thread.callers.back());
  thread.callers.pop_back();
  for (auto const& [from, to, bytes] : caller.call->results) {
    std::memcpy(caller.memory + to, thread.frame + from, static_cast<std::size_t>(bytes));
  }
  thread.registers = caller.registers;
  thread.frame = caller.memory;
  thread.function = caller.function;
  thread.next = caller.next;
  thread.memory = std::move(caller.owned);
  return Outcome::kJumped;
}

Outcome fault_unsupported(Thread& thread, Instruction const& i) {
  throw_fault(thread, i, "instruction that the emulator does not support");
}

Rules const& control_rules() {
  static Rules const rules{
      {"ret", select_return},           {"exit", select_exit},         {"trap", select_trap},
      {"brkpt", select_trap},           {"nanosleep", select_yield},   {"bar", select_barrier},
      {"barrier", select_barrier},      {"pmevent", select_nothing},   {"griddepcontrol", select_nothing},
      {"setmaxnreg", select_nothing},   {"membar", select_nothing},    {"fence", select_nothing},
      {"prefetch", select_nothing},     {"prefetchu", select_nothing}, {"discard", select_nothing},
      {"applypriority", select_nothing}};
  return rules;
}

}  // namespace gpups::emulator
