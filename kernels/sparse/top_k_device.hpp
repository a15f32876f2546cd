// SPDX-License-Identifier: Apache-2.0
// Top-k on a GPU: three histograms of the bits of magnitudes, from the highest bits down, give the exact threshold;
// then the selected elements are counted and written. The result does not depend on the order of work. For device
// objects only.
#pragma once

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <limits>

#include "kernels/base/store_wide.hpp"
#include "kernels/codec/code.hpp"
#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/read_back.hpp"
#include "kernels/sparse/top_k.hpp"

namespace gpups::kernels {

// Selects all elements whose magnitude has bits > `bits`, and the first `equal` elements with exactly these bits.
struct DeviceBound {
  std::uint32_t bits, equal;
};

// The elements of a tile: four (16 bytes) for each thread of a block.
inline constexpr std::size_t kPerThread = 4, kTile = kPerThread * kBlockThreadsMax;

// Loads a thread's elements of a tile; 0 beyond the end of the vector, which no bound selects.
__device__ inline float4 load_four(View<float const> x, std::size_t tile) {
  std::size_t const first = tile * kTile + threadIdx.x * kPerThread;
  if (first + kPerThread <= x.size() && reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0) {
    return *reinterpret_cast<float4 const*>(x.data() + first);
  }
  auto const at = [&](std::size_t i) { return i < x.size() ? x[i] : 0.0F; };
  return {at(first), at(first + 1), at(first + 2), at(first + 3)};
}

// Stores a thread's elements of a tile, except those beyond the end of the vector.
__device__ inline void store_four(float const (&from)[kPerThread], View<float> x, std::size_t tile) {
  std::size_t const first = tile * kTile + threadIdx.x * kPerThread;
  if (first + kPerThread <= x.size() && reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0) {
    return store_wide(x.data() + first, make_float4(from[0], from[1], from[2], from[3]));
  }
  for (std::size_t k = 0; k < kPerThread && first + k < x.size(); ++k) x[first + k] = from[k];
}

// Returns 1 in the upper 16 bits if x is above the bound, 1 in the lower 16 bits if it is equal to it. Sums of a tile
// fit in 16 bits each, sums of a vector in 32.
__device__ inline std::uint32_t count_one(float x, std::uint32_t bound) {
  std::uint32_t const bits = magnitude_bits(x);
  return bits > bound ? 0x10000U : bits == bound ? 1U : 0U;
}

// Counts the elements of each tile that are above the bound, and those equal to it.
struct CountTile {
  View<float const> x;
  DeviceBound const* bound;
  std::uint64_t* counts;  // (tiles + 1), counts above the bound in the upper half; the last one is 0

  __device__ void operator()(std::size_t tile) const {
    using Reduce = cub::BlockReduce<std::uint32_t, kBlockThreadsMax>;
    __shared__ typename Reduce::TempStorage memory;
    float4 const four = load_four(x, tile);
    std::uint32_t const bits = bound->bits;
    std::uint32_t const own =
        count_one(four.x, bits) + count_one(four.y, bits) + count_one(four.z, bits) + count_one(four.w, bits);
    std::uint32_t const all = Reduce(memory).Sum(own);
    if (threadIdx.x == 0) counts[tile] = std::uint64_t{all >> 16} << 32 | (all & 0xFFFFU);
    __syncthreads();
  }
};

// Writes the selected elements of each tile.
struct WriteTile {
  View<float const> x;
  DeviceBound const* bound;
  std::uint64_t const* before;  // counts of all tiles before each tile
  std::size_t room;
  View<std::uint32_t> indices;
  View<float> kept;
  View<float> residual;  // empty, or the memory of x

  __device__ void operator()(std::size_t tile) const {
    using Scan = cub::BlockScan<std::uint32_t, kBlockThreadsMax>;
    __shared__ typename Scan::TempStorage memory;
    float4 const four = load_four(x, tile);
    float const value[kPerThread] = {four.x, four.y, four.z, four.w};
    std::uint32_t const bits = bound->bits, equal_most = bound->equal;
    std::uint32_t own = 0;
    for (float const v : value) own += count_one(v, bits);
    std::uint32_t seen = 0;
    Scan(memory).ExclusiveSum(own, seen);
    __syncthreads();  // the next tile reuses the memory of the scan
    std::uint64_t above = (before[tile] >> 32) + (seen >> 16), equal = (before[tile] & 0xFFFFFFFFU) + (seen & 0xFFFFU);
    float left[kPerThread];  // residual
    bool any = false;
    for (std::size_t k = 0; k < kPerThread; ++k) {
      std::uint32_t const one = count_one(value[k], bits);
      std::uint64_t const rank = above + (equal < equal_most ? equal : equal_most);
      bool const keep = (one > 1 || (one == 1 && equal < equal_most)) && rank < room;
      above += one >> 16;
      equal += one & 0xFFFFU;
      left[k] = keep ? 0 : value[k];
      any = any || keep;
      if (!keep) continue;
      indices[rank] = static_cast<std::uint32_t>(tile * kTile + threadIdx.x * kPerThread + k);
      kept[rank] = value[k];
    }
    if (any && !residual.empty()) store_four(left, residual, tile);
  }
};

// Adds the values to the residual, and returns it; without a residual, returns the values.
inline View<float const> sum_in_place(DeviceExec ex, View<float const> values, View<float> residual) {
  if (residual.empty()) return values;
  each(ex, values.size(), [=] GPUPS_FN(std::size_t i) { residual[i] += values[i]; });
  return residual;
}

// Writes the selected elements, the first `room` of them, and returns their number. All arrays and `bound` are on the
// device. Blocks until the stream is done. REQUIRES: bound->bits > 0 or bound->equal == 0.
inline std::size_t wait_write_selected(DeviceExec ex, View<float const> x, DeviceBound const* bound, std::size_t room,
                                       View<std::uint32_t> indices, View<float> kept, View<float> residual) {
  if (x.empty()) return 0;
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  std::size_t const tiles = (x.size() + kTile - 1) / kTile;
  Array<std::uint64_t> const counts(x.device(), tiles + 1);
  check_cuda(cudaMemsetAsync(counts.data() + tiles, 0, sizeof(std::uint64_t), stream), "clearing a count");
  each_block(ex, tiles, CountTile{x, bound, counts.data()});
  auto const scratch = run_with_scratch(ex, x.device(), [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, bytes, counts.data(), counts.data(),
                                         static_cast<std::int64_t>(tiles + 1), stream);
  });
  each_block(ex, tiles, WriteTile{x, bound, counts.data(), room, indices, kept, residual});
  DeviceBound exact{};
  copy_to_host(ex, &exact, bound, sizeof exact, "reading a bound");
  std::uint64_t const total = wait_read(ex, counts.data() + tiles, "reading a count");
  std::uint64_t const equal = total & 0xFFFFFFFFU;
  std::uint64_t const all = (total >> 32) + (equal < exact.equal ? equal : exact.equal);
  return all < room ? all : room;
}

// A magnitude consists of digits of 11, 10 and 10 bits.
constexpr unsigned digit_shift(int level) { return 20 - 10 * static_cast<unsigned>(level); }
constexpr unsigned digit_bits(int level) { return level == 0 ? 11 : 10; }
inline constexpr std::uint32_t kDigits = 2048;
// Tiles that one block of threads counts.
inline constexpr std::size_t kTilesTogether = 16;

// The state of the search for the threshold: the digits found so far, the rank of the threshold among the elements that
// begin with these digits, and the number of elements to select.
struct DigitSearch {
  std::uint32_t prefix, rank, kept;
};

// Counts the next digit of the elements that begin with the prefix, except zeros.
struct CountDigits {
  View<float const> x;
  DigitSearch const* search;
  std::uint32_t* digits;
  int level;

  __device__ void operator()(std::size_t block) const {
    // Two copies, so that warps have fewer conflicts.
    __shared__ std::uint32_t count[2][kDigits];
    for (std::uint32_t d = threadIdx.x; d < 2 * kDigits; d += kBlockThreadsMax) count[d / kDigits][d % kDigits] = 0;
    __syncthreads();
    unsigned const shift = digit_shift(level), above = shift + digit_bits(level);
    std::uint32_t const prefix = search->prefix;
    std::uint32_t* const own = count[threadIdx.x / 32 % 2];
    std::size_t const tiles = (x.size() + kTile - 1) / kTile;
    std::size_t const end = (block + 1) * kTilesTogether < tiles ? (block + 1) * kTilesTogether : tiles;
#pragma unroll 2
    for (std::size_t tile = block * kTilesTogether; tile < end; ++tile) {
      float4 const four = load_four(x, tile);
      add(own, four.x, above, shift, prefix);
      add(own, four.y, above, shift, prefix);
      add(own, four.z, above, shift, prefix);
      add(own, four.w, above, shift, prefix);
    }
    __syncthreads();
    for (std::uint32_t d = threadIdx.x; d < kDigits; d += kBlockThreadsMax) {
      std::uint32_t const sum = count[0][d] + count[1][d];
      if (sum != 0) atomicAdd(digits + d, sum);
    }
    __syncthreads();
  }

 private:
  // All threads of a warp call this together. If all of them have the same digit, one thread adds for all, so that a
  // vector of equal elements is not slow.
  __device__ static void add(std::uint32_t* own, float value, unsigned above, unsigned shift, std::uint32_t prefix) {
    std::uint32_t const bits = magnitude_bits(value);
    bool const counts = bits != 0 && (above >= 31 || bits >> above == prefix);
    std::uint32_t const digit = counts ? bits >> shift & ((1U << (above - shift)) - 1) : kDigits;
    int same = 0;
    __match_all_sync(0xFFFFFFFFU, digit, &same);
    if (same != 0) {
      if (counts && threadIdx.x % 32 == 0) atomicAdd(own + digit, 32);
    } else if (counts) {
      atomicAdd(own + digit, 1);
    }
  }
};

// Run by one block: finds the next digit of the element with the searched rank.
struct FindDigit {
  std::uint32_t const* digits;
  DigitSearch* search;
  DeviceBound* bound;  // written after the last digit
  int level;

  __device__ void operator()(std::size_t) const {
    using Scan = cub::BlockScan<std::uint32_t, kBlockThreadsMax>;
    __shared__ typename Scan::TempStorage memory;
    __shared__ std::uint32_t rank;
    // Digits in descending order, two for each thread.
    std::uint32_t const high = kDigits - 1 - 2 * threadIdx.x, low = high - 1;
    std::uint32_t const in_high = digits[high], own = in_high + digits[low];
    std::uint32_t before = 0, total = 0;
    Scan(memory).ExclusiveSum(own, before, total);
    if (threadIdx.x == 0) {
      if (level == 0 && search->kept > total) search->rank = search->kept = total;
      rank = search->rank;
      if (rank == 0) *bound = {0xFFFFFFFFU, 0};
    }
    __syncthreads();
    if (rank == 0 || rank <= before || rank > before + own) return;
    bool const is_high = rank <= before + in_high;
    std::uint32_t const prefix = search->prefix << digit_bits(level) | (is_high ? high : low);
    std::uint32_t const left = rank - before - (is_high ? 0 : in_high);
    search->prefix = prefix;
    search->rank = left;
    if (level == 2) *bound = {prefix, left};
  }
};

inline TopKResult top_k(DeviceExec ex, TopK const& t) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  View<float const> const x = sum_in_place(ex, t.values, t.residual);
  auto const k = static_cast<std::uint32_t>(t.k < x.size() ? t.k : x.size());
  if (k == 0) return {0, kNone};
  Device const device = x.device();
  Array<std::uint32_t> const digits(device, kDigits);
  Array<DigitSearch> const search(device, 1);
  Array<DeviceBound> const bound(device, 1);
  DigitSearch* const start = search.data();
  each(ex, 1, [=] GPUPS_FN(std::size_t) { *start = {0, k, k}; });
  std::size_t const tiles = (x.size() + kTile - 1) / kTile;
  for (int level = 0; level < 3; ++level) {
    check_cuda(cudaMemsetAsync(digits.data(), 0, digits.bytes(), stream), "clearing a histogram");
    each_block(ex, (tiles + kTilesTogether - 1) / kTilesTogether, CountDigits{x, search.data(), digits.data(), level});
    each_block(ex, 1, FindDigit{digits.data(), search.data(), bound.data(), level});
  }
  std::size_t const count = wait_write_selected(ex, x, bound.data(), k, t.indices, t.kept, t.residual);
  if (count == 0) return {0, kNone};
  DeviceBound const exact = wait_read(ex, bound.data(), "reading a bound");
  return {count, std::bit_cast<float>(exact.bits)};
}

}  // namespace gpups::kernels
