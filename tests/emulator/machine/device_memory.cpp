// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/machine/device_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

namespace gpups::emulator {
namespace {

constexpr std::size_t kPageBytes = 4096;

// Never destroyed: other objects free memory at the end of the process.
struct Allocations {
  std::map<std::uint64_t, Allocation> by_begin;
  std::uint64_t version = 1;
};
Allocations& allocations() {
  static auto& all = *new Allocations;
  return all;
}

char const* name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
      return "device";
    case MemoryKind::kPinned:
      return "pinned";
    case MemoryKind::kVariable:
      return "a variable's";
    default:
      return "pageable";
  }
}

}  // namespace

// The allocations are apart from each other by at least a page, so an access past one's end does not hit another one.
std::uint8_t* allocate(std::size_t bytes, MemoryKind kind, int device) {
  std::size_t const pages = (bytes + kPageBytes - 1) / kPageBytes + 1;
  auto* const memory = static_cast<std::uint8_t*>(std::aligned_alloc(kPageBytes, pages * kPageBytes));
  if (memory == nullptr) return nullptr;
  std::memset(memory, kFreshByte, bytes);
  auto const begin = reinterpret_cast<std::uint64_t>(memory);
  allocations().by_begin[begin] = {begin, begin + bytes, kind, device};
  ++allocations().version;
  return memory;
}

std::optional<Allocation> release(void* memory) {
  auto const node = allocations().by_begin.extract(reinterpret_cast<std::uint64_t>(memory));
  if (node.empty()) return std::nullopt;
  ++allocations().version;
  Allocation const freed = node.mapped();
  std::memset(memory, kFreedByte, freed.end - freed.begin);
  std::free(memory);
  return freed;
}

std::optional<Allocation> find_allocation(std::uint64_t address, std::uint64_t bytes) {
  auto const after = allocations().by_begin.upper_bound(address);
  if (after == allocations().by_begin.begin()) return std::nullopt;
  Allocation const& found = std::prev(after)->second;
  return found.contains(address, bytes) ? std::optional(found) : std::nullopt;
}

std::uint64_t allocations_version() { return allocations().version; }

std::string describe_address(std::uint64_t address) {
  auto const after = allocations().by_begin.upper_bound(address);
  if (after == allocations().by_begin.begin()) return "before all allocations: perhaps an address of the host";
  auto const& [begin, end, kind, device] = std::prev(after)->second;
  std::string const bytes = std::to_string(end - begin) + " bytes of " + name_of(kind) + " memory";
  if (address < end) return std::to_string(address - begin) + " bytes after the start of " + bytes;
  return std::to_string(address - end) + " bytes after the end of " + bytes;
}

DeviceUse device_use(int device) {
  DeviceUse use;
  for (auto const& [begin, allocation] : allocations().by_begin) {
    if (allocation.kind != MemoryKind::kDevice || allocation.device != device) continue;
    use.bytes += allocation.end - allocation.begin;
    ++use.allocations;
  }
  return use;
}

}  // namespace gpups::emulator
