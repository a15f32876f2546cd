// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/machine/warp_operations.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <set>

namespace gpups::emulator {
namespace {

// Lanes that execute the same instruction together.
struct Group {
  Lanes const& lanes;
  std::uint32_t members;  // a bit for each lane
  Instruction const& instruction;

  bool has(std::uint32_t lane) const { return (members >> lane & 1) != 0; }
  template <class F>
  void each(F f) const {
    for (std::uint32_t lane = 0; lane < kWarpThreads; ++lane) {
      if (has(lane)) f(lane, *lanes[lane]);
    }
  }
};

// Prints a warning, once for each instruction.
void warn_once(Instruction const& instruction, std::string const& what) {
  static std::set<Instruction const*> warned;
  if (warned.insert(&instruction).second) {
    std::fprintf(stderr, "emulator: %s, at '%s'\n", what.c_str(), instruction.text->c_str());
  }
}

// Returns the lane from which a lane reads, and whether it is in its segment; see "shfl.sync" of the PTX ISA.
struct ShuffleSource {
  std::uint32_t lane;
  bool in_segment;
};
ShuffleSource shuffle_source(std::uint32_t lane, std::uint32_t delta, std::uint32_t bounds, std::uint8_t mode) {
  std::uint32_t const clamp = bounds & 31, segment = bounds >> 8 & 31;
  auto const last = static_cast<std::int32_t>((lane & segment) | (clamp & ~segment));
  std::int32_t source = 0;
  bool in_segment = false;
  switch (mode) {
    case 0:  // up
      source = static_cast<std::int32_t>(lane) - static_cast<std::int32_t>(delta);
      in_segment = source >= last;
      break;
    case 1:  // down
      source = static_cast<std::int32_t>(lane + delta);
      in_segment = source <= last;
      break;
    case 2:  // butterfly
      source = static_cast<std::int32_t>(lane ^ delta);
      in_segment = source <= last;
      break;
    default:  // index
      source = static_cast<std::int32_t>((lane & segment) | (delta & ~segment));
      in_segment = source <= last;
  }
  return {in_segment ? static_cast<std::uint32_t>(source) : lane, in_segment};
}

void shuffle(Group const& group) {
  constexpr std::uint32_t kUndefined = 0xBAD0BAD0;
  Instruction const& i = group.instruction;
  std::array<std::uint32_t, kWarpThreads> values{};
  group.each([&](std::uint32_t lane, Thread& thread) { values[lane] = read<std::uint32_t>(thread, i.a); });
  group.each([&](std::uint32_t lane, Thread& thread) {
    auto const [source, in_segment] =
        shuffle_source(lane, read<std::uint32_t>(thread, i.b) & 31, read<std::uint32_t>(thread, i.c), i.mode);
    if (!group.has(source)) {
      warn_once(i, fmt::format("a shuffle reads from lane {}, which takes no part (its value is undefined)", source));
    }
    write<std::uint32_t>(thread, i.d, group.has(source) ? values[source] : kUndefined);
    write<bool>(thread, i.d2, in_segment);
  });
}

void vote(Group const& group) {
  Instruction const& i = group.instruction;
  std::uint32_t ballot = 0;
  group.each([&](std::uint32_t lane, Thread& thread) { ballot |= (read<std::uint32_t>(thread, i.a) & 1) << lane; });
  bool const all = ballot == group.members, none = ballot == 0;
  std::uint32_t const results[] = {ballot, all, !none, all || none};
  group.each([&](std::uint32_t, Thread& thread) { write<std::uint32_t>(thread, i.d, results[i.mode]); });
}

void match(Group const& group) {
  Instruction const& i = group.instruction;
  std::uint64_t const bits = i.type == Type::kB32 ? 0xFFFFFFFF : ~std::uint64_t{0};
  group.each([&](std::uint32_t, Thread& thread) {
    std::uint64_t const value = thread.registers[i.a] & bits;
    std::uint32_t equal = 0;
    group.each([&](std::uint32_t lane, Thread const& other) {
      if ((other.registers[i.a] & bits) == value) equal |= 1U << lane;
    });
    if (i.mode == 0) return write<std::uint32_t>(thread, i.d, equal);
    bool const all = equal == group.members;
    write<std::uint32_t>(thread, i.d, all ? thread.mask : 0);
    write<bool>(thread, i.d2, all);
  });
}

std::uint32_t reduced(Instruction const& i, std::uint32_t a, std::uint32_t b) {
  bool const is_signed = i.type == Type::kS32;
  auto const less = [&](std::uint32_t x, std::uint32_t y) {
    return is_signed ? static_cast<std::int32_t>(x) < static_cast<std::int32_t>(y) : x < y;
  };
  switch (i.mode) {
    case 0:
      return a + b;
    case 1:
      return less(b, a) ? b : a;
    case 2:
      return less(a, b) ? b : a;
    case 3:
      return a & b;
    case 4:
      return a | b;
    default:
      return a ^ b;
  }
}

void reduce(Group const& group) {
  Instruction const& i = group.instruction;
  auto const first = static_cast<std::uint32_t>(std::countr_zero(group.members));
  std::uint32_t result = read<std::uint32_t>(*group.lanes[first], i.a);
  group.each([&](std::uint32_t lane, Thread& thread) {
    if (lane != first) result = reduced(i, result, read<std::uint32_t>(thread, i.a));
  });
  group.each([&](std::uint32_t, Thread& thread) { write<std::uint32_t>(thread, i.d, result); });
}

void elect(Group const& group) {
  Instruction const& i = group.instruction;
  auto const leader = static_cast<std::uint32_t>(std::countr_zero(group.members));
  group.each([&](std::uint32_t lane, Thread& thread) {
    write<std::uint32_t>(thread, i.d, leader);
    write<bool>(thread, i.d2, lane == leader);
  });
}

WarpOperation operation_of(Instruction const& i) { return static_cast<WarpOperation>(i.operation); }

void execute(Group const& group) {
  switch (operation_of(group.instruction)) {
    case WarpOperation::kShuffle:
      shuffle(group);
      break;
    case WarpOperation::kVote:
      vote(group);
      break;
    case WarpOperation::kMatch:
      match(group);
      break;
    case WarpOperation::kActiveMask:
      group.each(
          [&](std::uint32_t, Thread& thread) { write<std::uint32_t>(thread, group.instruction.d, group.members); });
      break;
    case WarpOperation::kReduce:
      reduce(group);
      break;
    case WarpOperation::kElect:
      elect(group);
      break;
    case WarpOperation::kSync:
      break;
  }
  group.each([](std::uint32_t, Thread& thread) {
    thread.state = Thread::State::kRunning;
    thread.waits_at = nullptr;
  });
}

// Returns whether both lanes wait at the same warp instruction. Lanes may meet at different instructions of syncwarp.
bool meet(Thread const& one, Thread const& other) {
  WarpOperation const operation = operation_of(*one.waits_at);
  if (operation == WarpOperation::kSync) {
    return operation_of(*other.waits_at) == WarpOperation::kSync && other.mask == one.mask;
  }
  return one.waits_at == other.waits_at && (operation == WarpOperation::kActiveMask || other.mask == one.mask);
}

// The states of a warp's lanes, a bit for each lane.
struct WarpState {
  std::uint32_t present = 0, waiting = 0, exited = 0, running = 0;
};
WarpState state_of(Lanes const& lanes) {
  WarpState state;
  for (std::uint32_t lane = 0; lane < kWarpThreads; ++lane) {
    if (lanes[lane] == nullptr) continue;
    std::uint32_t const bit = 1U << lane;
    state.present |= bit;
    if (lanes[lane]->state == Thread::State::kInWarp) state.waiting |= bit;
    if (lanes[lane]->state == Thread::State::kExited) state.exited |= bit;
    if (lanes[lane]->state == Thread::State::kRunning) state.running |= bit;
  }
  return state;
}

// Returns whether all lanes of the mask that can still arrive have arrived.
bool is_complete(Group const& group, WarpState const& state, Thread const& first) {
  std::uint32_t const expected = first.mask & state.present & ~state.exited;
  if ((group.members & expected) != expected) return false;
  if (operation_of(group.instruction) != WarpOperation::kSync && (first.mask & state.exited) != 0) {
    warn_once(group.instruction,
              fmt::format("a warp instruction has a mask {:#x} with lanes that have exited", first.mask));
  }
  return true;
}

}  // namespace

Lanes lanes_of(Block& block, std::uint32_t warp) {
  Lanes lanes{};
  for (std::uint32_t lane = 0; lane < kWarpThreads; ++lane) {
    std::size_t const thread = std::size_t{warp} * kWarpThreads + lane;
    if (thread < block.threads.size()) lanes[lane] = &block.threads[thread];
  }
  return lanes;
}

bool finish_warp_instructions(Block& block, std::uint32_t warp, bool none_runs) {
  Lanes const lanes = lanes_of(block, warp);
  WarpState const state = state_of(lanes);
  bool finished = false;
  for (std::uint32_t left = state.waiting; left != 0;) {
    auto const first_lane = static_cast<std::uint32_t>(std::countr_zero(left));
    Thread const& first = *lanes[first_lane];
    Instruction const& instruction = *first.waits_at;
    std::uint32_t members = 0;
    for (std::uint32_t lane = first_lane; lane < kWarpThreads; ++lane) {
      if ((left >> lane & 1) != 0 && meet(first, *lanes[lane])) members |= 1U << lane;
    }
    left &= ~members;
    Group const group{lanes, members, instruction};
    bool complete = false;
    if (operation_of(instruction) == WarpOperation::kActiveMask) {
      complete = none_runs || state.running == 0;
    } else if (std::uint32_t const outside = members & ~first.mask; outside != 0) {
      throw_fault(first, instruction,
                  fmt::format("lane {} is not in its mask {:#x}", std::countr_zero(outside), first.mask));
    } else {
      complete = is_complete(group, state, first);
    }
    if (!complete) continue;
    execute(group);
    finished = true;
  }
  return finished;
}

}  // namespace gpups::emulator
