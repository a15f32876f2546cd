// SPDX-License-Identifier: Apache-2.0
// Distinct keys on a GPU: sorted by their hash, which is one-to-one and which homes do not decrease with.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "kernels/device_scratch.hpp"
#include "kernels/hash.hpp"
#include "kernels/launch.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups::kernels {

inline void unique_keys(DeviceExec ex, UniqueKeys const& u) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  std::size_t const n = u.keys.size();
  for (std::uint32_t h = 0; n == 0 && h <= u.homes; ++h) u.home_offsets[h] = 0;
  if (n == 0) return;

  Device const device = u.keys.device();
  Array<std::uint64_t> hashes(device, n), sorted(device, n);
  Array<std::uint32_t> entries(device, n), order(device, n), ranks(device, n), offsets(device, u.homes + 1);
  std::uint64_t *const hash = hashes.data(), *const by_hash = sorted.data();
  std::uint32_t *const entry = entries.data(), *const from = order.data(), *const rank = ranks.data();
  each(ex, n, [=] GPUPS_FN(std::size_t i) {
    hash[i] = hash_of(u.keys[i]);
    entry[i] = static_cast<std::uint32_t>(i);
  });
  auto const count = static_cast<std::int64_t>(n);
  auto const sort_scratch = run_with_scratch(device, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, hash, by_hash, entry, from, count, 0, 64, stream);
  });
  // rank[k] = number of distinct hashes up to place k, so the first has rank 1.
  each(ex, n, [=] GPUPS_FN(std::size_t k) { rank[k] = k == 0 || by_hash[k] != by_hash[k - 1] ? 1 : 0; });
  auto const scan_scratch = run_with_scratch(device, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, rank, rank, count, stream);
  });
  each(ex, n, [=] GPUPS_FN(std::size_t k) {
    u.positions[from[k]] = rank[k] - 1;
    if (k == 0 || rank[k] != rank[k - 1]) u.unique[rank[k] - 1] = u.keys[from[k]];
  });
  std::uint32_t* const offset = offsets.data();
  each(ex, u.homes + 1, [=] GPUPS_FN(std::size_t h) {
    std::size_t low = 0, high = n;
    while (low < high) {
      std::size_t const middle = (low + high) / 2;
      home_of_hash(by_hash[middle], u.homes) < h ? low = middle + 1 : high = middle;
    }
    offset[h] = low == 0 ? 0 : rank[low - 1];
  });
  check_cuda(cudaMemcpyAsync(u.home_offsets.data(), offset, offsets.bytes(), cudaMemcpyDeviceToHost, stream),
             "reading counts");
  check_cuda(cudaStreamSynchronize(stream), "waiting for distinct keys");
}

}  // namespace gpups::kernels
