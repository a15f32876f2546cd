// SPDX-License-Identifier: Apache-2.0
// The threads of a block while they execute a kernel, and how they read and write registers and memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/emulator/machine/counters.hpp"
#include "tests/emulator/machine/device_memory.hpp"
#include "tests/emulator/machine/exposed_loads.hpp"
#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {

struct Block;
inline constexpr std::uint32_t kWarpThreads = 32;

// Memory that is aligned for every access of a thread to its frame.
struct alignas(64) Line {
  std::array<std::uint8_t, 64> bytes;
};
inline std::size_t lines_for(std::size_t bytes) { return (bytes + sizeof(Line) - 1) / sizeof(Line); }

// The contents of registers, frames and shared memory that nothing has written.
inline constexpr std::uint8_t kUnwrittenByte = 0xA5;

// The frame and the registers of a device function while it is called.
class CallMemory {
 public:
  explicit CallMemory(Function const& function)
      : frame_lines_(lines_for(static_cast<std::size_t>(function.frame_bytes))),
        lines_(frame_lines_ + lines_for((static_cast<std::size_t>(function.registers) + function.constants.size()) *
                                        sizeof(Register))) {
    for (Line& line : lines_) line.bytes.fill(kUnwrittenByte);
    std::copy(function.constants.begin(), function.constants.end(), registers() + function.registers);
  }
  std::uint8_t* frame() { return lines_.front().bytes.data(); }
  Register* registers() { return reinterpret_cast<Register*>(lines_.data() + frame_lines_); }

 private:
  std::size_t frame_lines_;
  std::vector<Line> lines_;
};

// A function that has called another one: its state until the callee returns.
struct Frame {
  Function const* function;
  std::uint32_t next;
  Register* registers;
  std::uint8_t* memory;
  Call const* call;
  std::unique_ptr<CallMemory> owned;  // null for a kernel
};

// One thread. It executes instructions until it waits for its warp or block.
struct Thread {
  enum class State : std::uint8_t { kRunning, kInWarp, kAtBarrier, kExited };

  Register* registers = nullptr;
  std::uint8_t* frame = nullptr;       // parameters of calls, and local memory
  std::uint8_t* parameters = nullptr;  // of the kernel
  Function const* function = nullptr;
  std::uint32_t next = 0;  // index of the next instruction
  std::uint32_t carry = 0;
  State state = State::kRunning;
  Instruction const* waits_at = nullptr;  // unless it is running
  std::uint32_t mask = 0;                 // of the warp instruction at which it waits
  std::uint32_t barrier = 0, barrier_threads = 0;
  std::uint32_t number = 0;                 // in its block
  std::array<std::uint32_t, 3> position{};  // the same in three dimensions
  Block* block = nullptr;
  std::vector<Frame> callers;
  std::unique_ptr<CallMemory> memory;  // of a device function; null in a kernel
  // The allocations that were accessed last.
  std::array<Allocation, 4> recent{};
  std::uint64_t recent_version = 0;
  std::uint8_t oldest = 0;
  ExposedLoads exposed;     // if the block counts
  bool has_loaded = false;  // the last instruction has, from global memory; if the block counts

  std::uint32_t lane() const { return number % kWarpThreads; }
};

// A block of threads that share memory and barriers.
struct Block {
  Function const* function = nullptr;
  std::array<std::uint32_t, 3> position{}, grid{}, size{};
  std::uint32_t number = 0;  // in its grid
  std::uint8_t* parameters = nullptr;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<Thread> threads;
  std::uint32_t running = 0;  // threads that have not exited
  std::vector<std::uint8_t> shared;
  std::vector<Line> storage;         // of the frames and registers
  AccessCounter* counter = nullptr;  // null: accesses are not counted
  std::uint64_t instructions = 0;    // that its threads have executed

  std::uint32_t warps() const { return (static_cast<std::uint32_t>(threads.size()) + kWarpThreads - 1) / kWarpThreads; }
};

// Throws KernelError: the thread, the instruction and what is wrong.
[[noreturn]] void throw_fault(Thread const& thread, Instruction const& instruction, std::string const& what);

// Returns the address of a load, a store or an atomic operation.
inline std::uint64_t address_of(Thread const& thread, Instruction const& i) {
  auto const offset = static_cast<std::uint64_t>(i.offset);
  switch (i.base) {
    case AddressBase::kRegister:
      return thread.registers[i.a] + offset;
    case AddressBase::kAbsolute:
      return offset;
    case AddressBase::kParameters:
      return reinterpret_cast<std::uint64_t>(thread.parameters) + offset;
    default:
      return reinterpret_cast<std::uint64_t>(thread.frame) + offset;
  }
}

// Returns the memory of an access, after a check that the thread may access it. Throws KernelError if not. bytes: a
// power of two.
enum class Access : std::uint8_t { kRead, kWrite };
std::uint8_t* checked_memory(Thread& thread, Instruction const& instruction, std::uint32_t bytes, Access access);

template <class T>
T read(Thread const& thread, RegisterId id) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(thread.registers[id]);
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(thread.registers[id]));
  } else {
    return static_cast<T>(thread.registers[id]);
  }
}
template <class T>
void write(Thread& thread, RegisterId id, T value) {
  if (id == kNoRegister) return;
  if constexpr (std::is_same_v<T, double>) {
    thread.registers[id] = std::bit_cast<std::uint64_t>(value);
  } else if constexpr (std::is_same_v<T, float>) {
    thread.registers[id] = std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    thread.registers[id] = value ? 1 : 0;
  } else {
    thread.registers[id] = static_cast<std::make_unsigned_t<T>>(value);
  }
}

}  // namespace gpups::emulator
