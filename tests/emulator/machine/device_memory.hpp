// SPDX-License-Identifier: Apache-2.0
// The allocations that device code and copies may access. Every access is checked against them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpups::emulator {

// kPageable: host memory that was not allocated here.
enum class MemoryKind : std::uint8_t { kPageable, kDevice, kPinned, kVariable };

struct Allocation {
  std::uint64_t begin, end;
  MemoryKind kind;
  int device;  // of device memory
  bool contains(std::uint64_t address, std::uint64_t bytes) const { return address >= begin && address + bytes <= end; }
};

// All functions are called with the lock of the runtime held, see runtime/state.hpp.

// Returns new memory, filled with kFreshByte, or null.
inline constexpr int kFreshByte = 0xCB, kFreedByte = 0xDD;
std::uint8_t* allocate(std::size_t bytes, MemoryKind kind, int device);
// Fills the allocation with kFreedByte and frees it. Returns nothing if there is no allocation at this address.
std::optional<Allocation> release(void* memory);

// Returns the allocation with all of these bytes.
std::optional<Allocation> find_allocation(std::uint64_t address, std::uint64_t bytes);
inline std::optional<Allocation> find_allocation(void const* address, std::uint64_t bytes) {
  return find_allocation(reinterpret_cast<std::uint64_t>(address), bytes);
}
// Changes with each allocation and release, so that results of find_allocation() can be kept meanwhile.
std::uint64_t allocations_version();
// Describes where an address is, for messages: "12 bytes after the end of an allocation of 400 bytes".
std::string describe_address(std::uint64_t address);
inline std::string describe_address(void const* address) {
  return describe_address(reinterpret_cast<std::uint64_t>(address));
}

// Returns the bytes in use by device memory of a device, and the number of its allocations.
struct DeviceUse {
  std::size_t bytes = 0, allocations = 0;
};
DeviceUse device_use(int device);

}  // namespace gpups::emulator
