// SPDX-License-Identifier: Apache-2.0
// Allocations, copies and fills. Copies and fills are checked when they are queued, and again when they are executed.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/emulator/machine/device_memory.hpp"
#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"

namespace gpups::emulator {
namespace {

// Reports memory that is allocated when the process exits; see Options::leaks.
void report_leaks() {
  if (!options().leaks) return;
  DeviceUse use;
  for (int device = 0; device < options().devices; ++device) {
    auto const [bytes, allocations] = device_use(device);
    use.bytes += bytes;
    use.allocations += allocations;
  }
  if (use.allocations == 0) return;
  std::fprintf(stderr, "emulator: %zu allocations of %zu bytes were not freed\n", use.allocations, use.bytes);
  std::fflush(nullptr);
  std::_Exit(1);
}

std::size_t total_bytes() { return options().memory_mib << 20; }

// Bytes that the memory pool of each device keeps: freed in the order of streams, and not returned to the device.
std::map<int, std::size_t>& kept_in_pool() {
  static auto& all = *new std::map<int, std::size_t>;
  return all;
}
std::size_t free_bytes(int device) {
  std::size_t const used = device_use(device).bytes + kept_in_pool()[device];
  return total_bytes() - std::min(total_bytes(), used);
}

cudaError_t allocate_checked(void** memory, std::size_t bytes, MemoryKind kind) {
  RuntimeLock const lock(runtime_mutex());
  [[maybe_unused]] static int const registered = std::atexit(report_leaks);
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  use_context();
  bool const is_device = kind == MemoryKind::kDevice;
  if (is_device && bytes > free_bytes(current_device())) return fail(cudaErrorMemoryAllocation);
  *memory = allocate(bytes, kind, current_device());
  if (*memory == nullptr) return fail(cudaErrorMemoryAllocation);
  ++(is_device ? runtime_counts().allocations : runtime_counts().pinned_allocations);
  return cudaSuccess;
}

// All work that may use the memory is executed before, as on a GPU.
cudaError_t release_checked(void* memory, MemoryKind kind) {
  if (memory == nullptr) return cudaSuccess;
  RuntimeLock const lock(runtime_mutex());
  use_context();
  drain_device(current_device());
  auto const found = find_allocation(memory, 1);
  if (!found || found->kind != kind || found->begin != reinterpret_cast<std::uint64_t>(memory)) {
    return report(cudaErrorInvalidValue,
                  fmt::format("an address is freed that was not allocated so: {}", describe_address(memory)));
  }
  (void)release(memory);
  return cudaSuccess;
}

// One end of a copy.
struct End {
  void const* address;
  MemoryKind kind;
  bool is_whole;    // all bytes are in one allocation, or none is
  int device = -1;  // of device memory

  bool is_on_device() const { return kind == MemoryKind::kDevice || kind == MemoryKind::kVariable; }
};
End end_at(void const* address, std::size_t bytes) {
  if (auto const found = find_allocation(address, bytes)) return {address, found->kind, true, found->device};
  return {address, MemoryKind::kPageable, !find_allocation(address, 1), -1};
}

// Throws KernelError if the memory was freed after the work was queued.
void check_unchanged(End const& end, std::size_t bytes, char const* work) {
  End const now = end_at(end.address, bytes);
  if (now.kind == end.kind && now.is_whole) return;
  throw KernelError{cudaErrorIllegalAddress,
                    fmt::format("memory was freed before a queued {} of {} bytes was executed, {}", work, bytes,
                                describe_address(end.address))};
}

bool is_direction(End const& to, End const& from, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return to.is_on_device() && !from.is_on_device();
    case cudaMemcpyDeviceToHost:
      return !to.is_on_device() && from.is_on_device();
    case cudaMemcpyDeviceToDevice:
      return to.is_on_device() && from.is_on_device();
    default:
      return true;
  }
}

void count_copy(End const& to, End const& from, std::size_t bytes) {
  RuntimeCounts& counts = runtime_counts();
  auto& copies = !to.is_on_device() ? counts.to_host : from.is_on_device() ? counts.within_device : counts.to_device;
  ++copies.count;
  copies.bytes += bytes;
  counts.pageable_copies += to.kind == MemoryKind::kPageable || from.kind == MemoryKind::kPageable ? 1 : 0;
}

// Returns whether a device of the copy cannot access the memory of the other one, although a call would allow it. Then
// a driver copies through the memory of the host.
bool lacks_peer_access(End const& to, End const& from, cudaStream_t stream) {
  if (to.kind != MemoryKind::kDevice || from.kind != MemoryKind::kDevice || to.device == from.device) return false;
  int const own = device_of(stream), other = own == to.device ? from.device : to.device;
  return options().peers && !is_peer_enabled(own, other);
}

// A copy from pageable memory reads it at once; a copy to pageable memory ends before the call returns.
void queue_copy(void* memory, End const& to, End const& from, std::size_t bytes, cudaStream_t stream) {
  if (from.kind == MemoryKind::kPageable) {
    auto const* const source = static_cast<std::uint8_t const*>(from.address);
    enqueue(stream, [=, staged = std::vector<std::uint8_t>(source, source + bytes)] {
      if (to.kind != MemoryKind::kPageable) check_unchanged(to, bytes, "copy");
      std::memcpy(memory, staged.data(), bytes);
    });
  } else {
    enqueue(stream, [=] {
      if (to.kind != MemoryKind::kPageable) check_unchanged(to, bytes, "copy");
      check_unchanged(from, bytes, "copy");
      std::memmove(memory, from.address, bytes);
    });
  }
  if (to.kind == MemoryKind::kPageable) drain(stream);
}

cudaError_t copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  End const target = end_at(to, bytes), source = end_at(from, bytes);
  if (!target.is_whole || !source.is_whole) {
    return report(cudaErrorInvalidValue,
                  fmt::format("a copy of {} bytes passes the end of its {}, {}", bytes,
                              target.is_whole ? "source" : "target", describe_address(target.is_whole ? from : to)));
  }
  if (!is_direction(target, source, kind)) {
    return report(cudaErrorInvalidMemcpyDirection, fmt::format("a copy has a wrong direction: to {}, from {}",
                                                               describe_address(to), describe_address(from)));
  }
  use_context();
  if (lacks_peer_access(target, source, stream)) {
    return report(cudaErrorPeerAccessNotEnabled,
                  fmt::format("{} bytes are to be copied between the devices {} and {} without peer access (a driver "
                              "would copy them through the host)",
                              bytes, source.device, target.device));
  }
  count_copy(target, source, bytes);
  queue_copy(to, target, source, bytes, stream);
  return cudaSuccess;
}

cudaError_t fill(void* to, int byte, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  End const target = end_at(to, bytes);
  if (!target.is_whole || target.kind == MemoryKind::kPageable) {
    return report(cudaErrorInvalidValue,
                  fmt::format("a fill of {} bytes is out of bounds, {}", bytes, describe_address(to)));
  }
  use_context();
  ++runtime_counts().fills.count;
  runtime_counts().fills.bytes += bytes;
  enqueue(stream, [=] {
    check_unchanged(target, bytes, "fill");
    std::memset(to, byte, bytes);
  });
  return cudaSuccess;
}

}  // namespace
}  // namespace gpups::emulator

using namespace gpups::emulator;

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return allocate_checked(memory, bytes, MemoryKind::kDevice);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return allocate_checked(memory, bytes, MemoryKind::kPinned);
}
// Takes memory that the pool keeps first.
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  RuntimeLock const lock(runtime_mutex());
  std::size_t& kept = kept_in_pool()[current_device()];
  std::size_t const taken = std::min(kept, bytes);
  kept -= taken;
  cudaError_t const result = cudaMalloc(memory, bytes);
  if (result != cudaSuccess) kept += taken;
  return result;
}
cudaError_t cudaFree(void* memory) { return release_checked(memory, MemoryKind::kDevice); }
cudaError_t cudaFreeHost(void* memory) { return release_checked(memory, MemoryKind::kPinned); }

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  enqueue(stream, [memory] {
    auto const freed = release(memory);
    if (!freed) {
      throw KernelError{cudaErrorInvalidValue,
                        fmt::format("an address is freed that was not allocated: {}", describe_address(memory))};
    }
    kept_in_pool()[freed->device] += freed->end - freed->begin;
  });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  return copy(to, from, bytes, kind, stream);
}
cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  RuntimeLock const lock(runtime_mutex());
  cudaError_t const result = copy(to, from, bytes, kind, nullptr);
  drain(cudaStream_t{});
  return result;
}
cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  return fill(to, byte, bytes, stream);
}
cudaError_t cudaMemset(void* to, int byte, std::size_t bytes) {
  RuntimeLock const lock(runtime_mutex());
  cudaError_t const result = fill(to, byte, bytes, nullptr);
  drain(cudaStream_t{});
  return result;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  RuntimeLock const lock(runtime_mutex());
  use_context();
  *total = total_bytes();
  *free = free_bytes(current_device());
  return cudaSuccess;
}

// The handle of a pool is the number of its device, from 1.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  *pool = reinterpret_cast<cudaMemPool_t>(static_cast<std::uintptr_t>(device) + 1);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes) {
  RuntimeLock const lock(runtime_mutex());
  std::size_t& kept = kept_in_pool()[static_cast<int>(reinterpret_cast<std::uintptr_t>(pool) - 1)];
  kept = std::min(kept, bytes);
  return cudaSuccess;
}

}  // extern "C"
