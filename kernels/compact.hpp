// SPDX-License-Identifier: Apache-2.0
// Numbers the elements that satisfy a condition, in order: the parallel form of `if (pick(i)) emit(i, count++)`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/launch.hpp"
#include "kernels/read_back.hpp"

#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>

#include "kernels/device_scratch.hpp"
#endif

namespace gpups::kernels {

// Calls emit(i, rank) for each i < n for which pick(i) is true; rank is the number of smaller i for which it is.
// Returns the number of calls. wait_compact() waits for the stream; compact() is for the host only. REQUIRES: n < 2^32
// - 1; emit(i) does not change pick(k) of any other k.
#ifdef __CUDACC__
template <class Pick, class Emit>
std::size_t wait_compact(DeviceExec ex, Device device, std::size_t n, Pick pick, Emit emit) {
  if (n == 0) return 0;
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  Array<std::uint32_t> ranks(device, n + 1);
  std::uint32_t* const rank = ranks.data();
  each(ex, n + 1, [=] GPUPS_FN(std::size_t i) { rank[i] = i < n && pick(i) ? 1 : 0; });
  auto const scratch = run_with_scratch(ex, device, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, bytes, rank, rank, static_cast<std::int64_t>(n + 1), stream);
  });
  each(ex, n, [=] GPUPS_FN(std::size_t i) {
    if (rank[i + 1] != rank[i]) emit(i, rank[i]);
  });
  return wait_read(ex, rank + n, "reading a count");
}
#else
template <class Pick, class Emit>
std::size_t compact(HostExec ex, std::size_t n, Pick pick, Emit emit) {
  std::size_t const blocks = (n + kBlockElements - 1) / kBlockElements;
  auto const end = [=](std::size_t block) {
    return (block + 1) * kBlockElements < n ? (block + 1) * kBlockElements : n;
  };
  std::vector<std::size_t> start(blocks + 1, 0);
  ex.arena->blocks(blocks, [&](std::size_t block) {
    std::size_t count = 0;
    for (std::size_t i = block * kBlockElements; i < end(block); ++i) count += pick(i) ? 1 : 0;
    start[block + 1] = count;
  });
  for (std::size_t b = 0; b < blocks; ++b) start[b + 1] += start[b];
  ex.arena->blocks(blocks, [&](std::size_t block) {
    if (start[block] == start[block + 1]) return;
    std::size_t rank = start[block];
    for (std::size_t i = block * kBlockElements; i < end(block); ++i) {
      if (pick(i)) emit(i, static_cast<std::uint32_t>(rank++));
    }
  });
  return start[blocks];
}
template <class Pick, class Emit>
std::size_t wait_compact(HostExec ex, Device, std::size_t n, Pick pick, Emit emit) {
  if (n == 0) return 0;
  wait_for(ex, "waiting for a count");
  return compact(ex, n, pick, emit);
}
#endif

}  // namespace gpups::kernels
