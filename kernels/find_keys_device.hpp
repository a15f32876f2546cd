// SPDX-License-Identifier: Apache-2.0
// Finds keys on a GPU, by teams of four threads, in up to 32 indices per launch.
#pragma once

#include "kernels/assert.hpp"
#include "kernels/atomic.hpp"
#include "kernels/index_keys.hpp"
#include "kernels/launch.hpp"
#include "kernels/probe.hpp"

namespace gpups::kernels {

inline constexpr unsigned kIndicesOfLaunch = 32;

// The searches of one launch. Each index has whole warps, so that all keys of a team belong to one index.
struct FindLaunch {
  KeysOfIndex index[kIndicesOfLaunch];
  std::size_t first[kIndicesOfLaunch + 1];  // first thread of each index; last: the number of threads
  unsigned count;
  std::uint32_t* missing;  // (count), or null
};

inline void find_keys(DeviceExec ex, FindLaunch const& launch) {
  each(ex, launch.first[launch.count], [launch] GPUPS_FN(std::size_t thread) {
    unsigned low = 0;
    for (unsigned high = launch.count; high - low > 1;) {
      unsigned const middle = (low + high) / 2;
      (thread < launch.first[middle] ? high : low) = middle;
    }
    KeysOfIndex const& index = launch.index[low];
    std::size_t const i = thread - launch.first[low];
    bool const has = i < index.keys.size();
    std::uint32_t const id = probe(FourThreads{}, index.buckets, has ? index.keys[i] : Key{}, has);
    if (has) index.ids[i] = id;
    if (launch.missing == nullptr) return;
    unsigned const missing = __ballot_sync(0xFFFFFFFF, has && id == kNoRow);  // a warp has keys of one index
    if (missing != 0 && threadIdx.x % 32 == 0) atomic_add(launch.missing + low, __popc(missing));
  });
}

inline void find_keys(DeviceExec ex, FindKeys const& f) {
  GPUPS_ASSERT(f.missing.empty() || f.missing.size() == f.indices.size());
  FindLaunch launch{};
  for (std::size_t k = 0; k < f.indices.size(); ++k) {
    std::size_t const threads = (f.indices[k].keys.size() + 31) / 32 * 32;
    if (launch.count == 0 && !f.missing.empty()) launch.missing = f.missing.data() + k;
    launch.index[launch.count] = f.indices[k];
    launch.first[launch.count + 1] = launch.first[launch.count] + threads;
    if (++launch.count < kIndicesOfLaunch && k + 1 < f.indices.size()) continue;
    find_keys(ex, launch);
    launch.count = 0;
  }
}

}  // namespace gpups::kernels
