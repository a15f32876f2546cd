// SPDX-License-Identifier: Apache-2.0
// The checks of memory accesses.
#include <fmt/core.h>

#include "tests/emulator/machine/thread.hpp"

namespace gpups::emulator {
namespace {

constexpr int kIllegalAddress = 700;  // cudaErrorIllegalAddress

std::uint8_t* shared_memory(Thread& thread, Instruction const& i, std::uint64_t offset, std::uint32_t bytes) {
  Block& block = *thread.block;
  if (offset + bytes > block.shared.size()) {
    throw_fault(
        thread, i,
        fmt::format("access of {} bytes at {} to shared memory of {} bytes", bytes, offset, block.shared.size()));
  }
  return block.shared.data() + offset;
}

bool is_within(std::uint8_t const* memory, int size, std::uint64_t address, std::uint32_t bytes) {
  auto const begin = reinterpret_cast<std::uint64_t>(memory);
  return address >= begin && address + bytes <= begin + static_cast<std::uint64_t>(size);
}

// Returns whether the bytes are in the frame of the thread, or in one of a function that has called it.
bool is_in_frame(Thread const& thread, std::uint64_t address, std::uint32_t bytes) {
  if (is_within(thread.frame, thread.function->frame_bytes, address, bytes)) return true;
  for (Frame const& caller : thread.callers) {
    if (is_within(caller.memory, caller.function->frame_bytes, address, bytes)) return true;
  }
  return false;
}

// Returns whether the bytes are in an allocation. Keeps the allocations that were found last.
bool is_allocated(Thread& thread, std::uint64_t address, std::uint32_t bytes) {
  if (thread.recent_version != allocations_version()) {
    thread.recent = {};
    thread.recent_version = allocations_version();
  }
  for (Allocation const& recent : thread.recent) {
    if (recent.contains(address, bytes)) return true;
  }
  auto const found = find_allocation(address, bytes);
  if (!found) return false;
  thread.recent[thread.oldest++ % thread.recent.size()] = *found;
  return true;
}

AccessKind kind_of(Instruction const& i, Access access) {
  if (i.mode == kAtomicMode) return AccessKind::kAtomic;
  return access == Access::kRead ? AccessKind::kLoad : AccessKind::kStore;
}

}  // namespace

void throw_fault(Thread const& thread, Instruction const& instruction, std::string const& what) {
  auto const& [x, y, z] = thread.block->position;
  throw KernelError{kIllegalAddress,
                    fmt::format("{} (thread {} of block {}, {}, {} at '{}' of {})", what, thread.number, x, y, z,
                                instruction.text ? *instruction.text : "?", thread.function->name)};
}

std::uint8_t* checked_memory(Thread& thread, Instruction const& i, std::uint32_t bytes, Access access) {
  std::uint64_t address = address_of(thread, i);
  if (address % bytes != 0) {
    throw_fault(thread, i, fmt::format("misaligned access of {} bytes, {}", bytes, describe_address(address)));
  }
  AccessCounter* const counter = thread.block->counter;
  bool const in_window =
      i.space == Space::kGeneric && address >= kSharedWindow && address < kSharedWindow + kSharedWindowBytes;
  if (i.space == Space::kShared || in_window) {
    std::uint64_t const offset = address & (kSharedWindowBytes - 1);
    std::uint8_t* const memory = shared_memory(thread, i, offset, bytes);
    if (counter != nullptr) counter->count(thread.number, i, offset, bytes, kind_of(i, access), true);
    return memory;
  }
  auto* const memory = reinterpret_cast<std::uint8_t*>(address);
  if (i.space == Space::kParam || i.space == Space::kLocal) {
    bool const is_parameter = is_within(thread.parameters, thread.block->function->parameter_bytes, address, bytes);
    if (is_parameter && access == Access::kWrite) throw_fault(thread, i, "write to the parameters of the kernel");
    if (is_parameter || is_in_frame(thread, address, bytes)) return memory;
  } else if (is_allocated(thread, address, bytes)) {
    if (counter != nullptr) {
      auto const kind = kind_of(i, access);
      counter->count(thread.number, i, address, bytes, kind, false);
      thread.has_loaded = kind != AccessKind::kStore;
    }
    return memory;
  } else if (i.space == Space::kGeneric &&
             (is_in_frame(thread, address, bytes) ||
              (access == Access::kRead &&
               is_within(thread.parameters, thread.block->function->parameter_bytes, address, bytes)))) {
    return memory;
  }
  throw_fault(thread, i,
              fmt::format("{} of {} bytes at {:#x}, {}", access == Access::kRead ? "read" : "write", bytes, address,
                          describe_address(address)));
}

}  // namespace gpups::emulator
