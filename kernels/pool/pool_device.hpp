// SPDX-License-Identifier: Apache-2.0
// Pools bags on a GPU. A tile of lanes pools a few consecutive bags, whose entries are consecutive too. Each lane finds
// the row of one entry; then all lanes add up the rows, 16 bytes of each row per lane, with four rows in flight at a
// time. A tile has as many lanes as a row has words of 16 bytes, so that short rows keep a warp busy too. Each sum
// belongs to one lane, so no lane waits for another bag.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/half.hpp"
#include "kernels/pool/bags.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

inline constexpr unsigned kWarpLanes = 32;
inline constexpr std::uint32_t kBagsOfTile = 4;
inline constexpr unsigned kRowsAtOnce = 4;

// The work of a warp: its tiles pool the bags from first_bag on, kBagsOfTile each, in the words from first_word on.
struct WarpTask {
  std::uint32_t first_bag;
  std::uint32_t first_word;
};

// The distribution of bags over warps.
struct WarpTasks {
  std::uint32_t lanes;    // of a tile: 4, 8, 16 or 32
  std::uint32_t columns;  // warps for each row: several if a row has more words than a warp has lanes
  std::uint32_t bags_per_warp;
  std::size_t warps;

  __device__ WarpTask task(std::size_t warp) const {
    return {static_cast<std::uint32_t>(warp / columns * bags_per_warp),
            static_cast<std::uint32_t>(warp % columns) * kWarpLanes};
  }
};

// Distributes bags over warps. number_bytes: bytes of a number of the rows.
inline WarpTasks warp_tasks(Bags const& bags, std::size_t number_bytes) {
  auto const words = static_cast<std::uint32_t>((bags.out.stride() * number_bytes + 15) / 16);
  WarpTasks t{kRowsAtOnce, (words + kWarpLanes - 1) / kWarpLanes, 0, 0};
  while (t.lanes < words && t.lanes < kWarpLanes) t.lanes *= 2;
  t.bags_per_warp = kWarpLanes / t.lanes * kBagsOfTile;
  t.warps = (bags.count + t.bags_per_warp - 1) / t.bags_per_warp * t.columns;
  return t;
}

// A word of 16 bytes of a row, and its numbers.
template <class T>
struct PooledWord {
  static constexpr unsigned kNumbers = 16 / sizeof(T);
  union {
    uint4 all;
    T number[kNumbers];
  };
};

// Returns the values of an entry without a row. Not inlined: few entries have none, and the registers that initial
// values need would be reserved beside those of the caller.
template <class Source>
__device__ __noinline__ FourValues absent_values(Source source, std::uint32_t entry, std::uint32_t quad) {
  return source.absent(entry, quad);
}

// Pools bags with one lane of a tile.
template <class Source>
struct TilePooler {
  using T = typename Source::Number;
  static constexpr unsigned kNumbers = PooledWord<T>::kNumbers;

  Source const& source;
  Bags const& bags;
  std::uint32_t lanes, lane, mask;  // of the tile
  std::uint32_t word;               // the word of each row that this lane adds up

  // Returns whether rows have the word of this lane.
  __device__ bool reads() const { return word * kNumbers < source.stride(); }

  // Adds the initial values of an entry without a row.
  __device__ void add_absent(float (&sum)[kNumbers], std::uint32_t entry, float weight) const {
#pragma unroll
    for (unsigned quad = 0; quad < kNumbers / 4; ++quad) {
      FourValues const q = absent_values(source, entry, word * (kNumbers / 4) + quad);
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) sum[4 * quad + k] += weight * q.value[k];
    }
  }

  // Writes the result of a bag, and sets the sum to 0. All lanes of the tile call it. If a lane has eight numbers, two
  // lanes write theirs together, as WarpLanes::transpose() explains.
  __device__ void finish(std::uint32_t bag, float (&sum)[kNumbers]) const {
    float const scale = bags.scale(bags.begin(bag + 1) - bags.begin(bag));
    float* const to = bags.row(bag);
    std::uint32_t const odd = lane % 2;
#pragma unroll
    for (unsigned k = 0; k < kNumbers; ++k) sum[k] *= scale;
#pragma unroll
    for (unsigned k = 0; kNumbers == 8 && k < 4; ++k) {
      float const other = __shfl_xor_sync(mask, odd == 1 ? sum[k] : sum[4 + k], 1);
      (odd == 1 ? sum[k] : sum[4 + k]) = other;
    }
#pragma unroll
    for (unsigned k = 0; k < kNumbers; k += 4) {
      std::uint32_t const column = kNumbers == 8 ? (word - odd) * 8 + odd * 4 + k * 2 : word * 4;
      if (column < bags.out.stride()) {
        *reinterpret_cast<float4*>(to + column) = make_float4(sum[k], sum[k + 1], sum[k + 2], sum[k + 3]);
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kNumbers; ++k) sum[k] = 0;
  }

  // Pools the bags bag .. last_bag - 1.
  __device__ void run(std::uint32_t bag, std::uint32_t last_bag) const {
    std::uint32_t const last = bags.begin(last_bag);
    std::uint32_t end = bags.begin(bag + 1);  // of the bag
    float sum[kNumbers] = {};
#pragma unroll 1
    for (std::uint32_t first = bags.begin(bag); first < last; first += lanes) {
      std::uint32_t const entry = first + lane;
      bool const has = entry < last;
      T const* const mine = source.row(entry, has);
      float const my_weight = has ? bags.weight(entry) : 0;
      std::uint32_t const count = last - first < lanes ? last - first : lanes;
#pragma unroll 1
      for (std::uint32_t at = 0; at < count; at += kRowsAtOnce) {
        bool there[kRowsAtOnce];
        PooledWord<T> value[kRowsAtOnce];
#pragma unroll
        for (unsigned k = 0; k < kRowsAtOnce; ++k) {
          auto const address = __shfl_sync(mask, reinterpret_cast<unsigned long long>(mine), at + k, lanes);
          value[k].all = make_uint4(0, 0, 0, 0);
          there[k] = address != 0;
          if (at + k < count && there[k] && reads()) {
            value[k].all = __ldg(reinterpret_cast<uint4 const*>(address) + word);
          }
        }
#pragma unroll
        for (unsigned k = 0; k < kRowsAtOnce; ++k) {
          float const weight = __shfl_sync(mask, my_weight, at + k, lanes);
          if (at + k >= count) continue;
#pragma unroll 1
          for (; first + at + k >= end; end = bags.begin(++bag + 1)) finish(bag, sum);
          if (!there[k]) {
            if (Source::kByKey && reads()) add_absent(sum, first + at + k, weight);
            continue;
          }
#pragma unroll
          for (unsigned j = 0; j < kNumbers; ++j) sum[j] += weight * to_float(value[k].number[j]);
        }
      }
    }
#pragma unroll 1
    for (; bag < last_bag; ++bag) finish(bag, sum);
  }
};

// Pools the bags of a warp. All lanes of the warp call it.
template <class Source>
__device__ void pool_warp(Source const& source, Bags const& bags, WarpTasks const& tasks, std::size_t warp) {
  WarpTask const task = tasks.task(warp);
  unsigned const lane = threadIdx.x % kWarpLanes, tile = lane / tasks.lanes;
  auto const count = static_cast<std::uint32_t>(bags.count);
  std::uint32_t const first = task.first_bag + tile * kBagsOfTile;
  if (first >= count) return;
  std::uint32_t const last = count - first > kBagsOfTile ? first + kBagsOfTile : count;
  unsigned const mask = (tasks.lanes == kWarpLanes ? ~0U : (1U << tasks.lanes) - 1) << tile * tasks.lanes;
  TilePooler<Source> const pooler{
      source, bags, tasks.lanes, lane % tasks.lanes, mask, task.first_word + lane % tasks.lanes};
  pooler.run(first, last);
}

}  // namespace gpups::kernels
