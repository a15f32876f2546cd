// SPDX-License-Identifier: Apache-2.0
// Top-k on a GPU: three histograms of the bits of magnitudes, from the highest bits down, give the exact threshold;
// then the selected elements are counted and written. The result does not depend on the order of work. For device
// objects only.
#pragma once

#include <limits>

#include "kernels/runtime/read_back.hpp"
#include "kernels/sparse/top_k.hpp"
#include "kernels/sparse/write_selected_device.hpp"

namespace gpups::kernels {

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
