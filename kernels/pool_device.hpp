// SPDX-License-Identifier: Apache-2.0
// Pools bags on a GPU. A tile of lanes does some consecutive bags, whose entries lie side by side: each lane finds the
// row of one of them, then all lanes add up 16 bytes of each row, four rows being on their way at a time. A tile has as
// many lanes as a row has words, so that short rows keep a warp busy too. No bag is shared, and none waits for another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bags.hpp"
#include "kernels/half.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

inline constexpr unsigned kWarpLanes = 32;
inline constexpr std::uint32_t kBagsOfTile = 4;
inline constexpr unsigned kRowsAtOnce = 4;

// What a warp is for: its tiles do the bags from first_bag on, kBagsOfTile each, and words from first_word on.
struct WarpTask {
  std::uint32_t first_bag;
  std::uint32_t first_word;
};

// How the bags of a source are given to warps.
struct WarpTasks {
  std::uint32_t lanes;    // of a tile: 4, 8, 16 or 32
  std::uint32_t columns;  // warps side by side, where a row has more words than a warp has lanes
  std::uint32_t bags_per_warp;
  std::size_t warps;

  __device__ WarpTask task(std::size_t warp) const {
    return {static_cast<std::uint32_t>(warp / columns * bags_per_warp),
            static_cast<std::uint32_t>(warp % columns) * kWarpLanes};
  }
};

// number_bytes: of a number of the rows.
inline WarpTasks warp_tasks(Bags const& bags, std::size_t number_bytes) {
  auto const words = static_cast<std::uint32_t>((bags.out.stride() * number_bytes + 15) / 16);
  WarpTasks t{kRowsAtOnce, (words + kWarpLanes - 1) / kWarpLanes, 0, 0};
  while (t.lanes < words && t.lanes < kWarpLanes) t.lanes *= 2;
  t.bags_per_warp = kWarpLanes / t.lanes * kBagsOfTile;
  t.warps = (bags.count + t.bags_per_warp - 1) / t.bags_per_warp * t.columns;
  return t;
}

// Values are added up 16 bytes of a row at a time.
template <class T>
struct PooledWord {
  static constexpr unsigned kNumbers = 16 / sizeof(T);
  union {
    uint4 all;
    T number[kNumbers];
  };
};

// What a lane does. Most bags have a row for each entry. Those that have not are pooled again, one row at a time:
// making initial values takes many registers, and all warps would have to keep them.
template <class Source>
struct TilePooler {
  using T = typename Source::Number;
  static constexpr unsigned kNumbers = PooledWord<T>::kNumbers;

  Source const& source;
  Bags const& bags;
  std::uint32_t lanes, lane, mask;  // of the tile
  std::uint32_t word;               // of the row, that this lane adds up

  __device__ bool reads() const { return word * kNumbers < source.stride(); }

  // What an entry without a row adds.
  __device__ void add_absent(float (&sum)[kNumbers], std::uint32_t entry, float weight) const {
#pragma unroll
    for (unsigned quad = 0; quad < kNumbers / 4; ++quad) {
      FourValues const q = source.absent(entry, word * (kNumbers / 4) + quad);
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) sum[4 * quad + k] += weight * q.value[k];
    }
  }

  // Writes a bag's sum, and begins the next.
  __device__ void finish(std::uint32_t bag, float (&sum)[kNumbers]) const {
    float const scale = bags.scale(bags.begin(bag + 1) - bags.begin(bag));
    float* const to = bags.row(bag) + word * kNumbers;
#pragma unroll
    for (unsigned k = 0; k < kNumbers; k += 4) {
      if (word * kNumbers + k < bags.out.stride()) {
        *reinterpret_cast<float4*>(to + k) =
            make_float4(sum[k] * scale, sum[k + 1] * scale, sum[k + 2] * scale, sum[k + 3] * scale);
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kNumbers; ++k) sum[k] = 0;
  }

  // Pools the bags [bag, last_bag) with kRows rows on their way at a time. Returns whether all entries have one.
  template <unsigned kRows, bool kAbsent>
  __device__ bool run(std::uint32_t bag, std::uint32_t last_bag) const {
    std::uint32_t const last = bags.begin(last_bag);
    std::uint32_t end = bags.begin(bag + 1);  // of the bag
    bool all = true;
    float sum[kNumbers] = {};
#pragma unroll 1
    for (std::uint32_t first = bags.begin(bag); first < last; first += lanes) {
      std::uint32_t const entry = first + lane;
      T const* mine = nullptr;
      float my_weight = 0;
      if (entry < last) {
        mine = source.row(entry);
        my_weight = bags.weight(entry);
      }
      std::uint32_t const count = last - first < lanes ? last - first : lanes;
#pragma unroll 1
      for (std::uint32_t at = 0; at < count; at += kRows) {
        bool there[kRows];
        PooledWord<T> value[kRows];
#pragma unroll
        for (unsigned k = 0; k < kRows; ++k) {
          auto const address = __shfl_sync(mask, reinterpret_cast<unsigned long long>(mine), at + k, lanes);
          value[k].all = make_uint4(0, 0, 0, 0);
          there[k] = address != 0;
          if (at + k < count && there[k] && reads()) {
            value[k].all = __ldg(reinterpret_cast<uint4 const*>(address) + word);
          }
        }
#pragma unroll
        for (unsigned k = 0; k < kRows; ++k) {
          float const weight = __shfl_sync(mask, my_weight, at + k, lanes);
          if (at + k >= count) continue;
#pragma unroll 1
          for (; first + at + k >= end; end = bags.begin(++bag + 1)) finish(bag, sum);
          all = all && there[k];
          if (kAbsent && !there[k]) {
            if (reads()) add_absent(sum, first + at + k, weight);
            continue;
          }
#pragma unroll
          for (unsigned j = 0; j < kNumbers; ++j) sum[j] += weight * to_float(value[k].number[j]);
        }
      }
    }
#pragma unroll 1
    for (; bag < last_bag; ++bag) finish(bag, sum);
    return all;
  }
};

template <class Source>
__device__ __noinline__ void pool_with_absent(TilePooler<Source> pooler, std::uint32_t first, std::uint32_t last) {
  pooler.template run<1, true>(first, last);
}

// What one warp does; called by all its lanes.
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
  bool const all = pooler.template run<kRowsAtOnce, false>(first, last);
  if (Source::kByKey && !all) pool_with_absent(pooler, first, last);
}

}  // namespace gpups::kernels
