// SPDX-License-Identifier: Apache-2.0
// Finds keys in any number of indices on a GPU, by teams of four threads, in one launch.
#pragma once

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/index/index_keys.hpp"
#include "kernels/index/probe.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

struct SearchedIndex {
  KeysOfIndex index;
  std::uint32_t* missing;  // or null
};

inline void find_keys(DeviceExec ex, FindKeys const& f) {
  GPUPS_ASSERT(f.missing.empty() || f.missing.size() == f.indices.size());
  std::vector<SearchedIndex> searched;
  for (std::size_t k = 0; k < f.indices.size(); ++k) {
    searched.push_back({f.indices[k], f.missing.empty() ? nullptr : f.missing.data() + k});
  }
  // Each index has whole warps, so that all keys of a team belong to one index.
  SegmentList const list(ex, std::move(searched),
                         [](SearchedIndex const& s) { return (s.index.keys.size() + 31) / 32 * 32; });
  each_item(ex, list.segments(), [] GPUPS_FN(SearchedIndex const& s, std::size_t i) {
    bool const has = i < s.index.keys.size();
    std::uint32_t const id = probe(FourThreads{}, s.index.buckets, has ? s.index.keys[i] : Key{}, has);
    if (has) s.index.ids[i] = id;
    if (s.missing == nullptr) return;
    unsigned const missing = __ballot_sync(0xFFFFFFFF, has && id == kNoRow);
    if (missing != 0 && threadIdx.x % 32 == 0) atomic_add(s.missing, __popc(missing));
  });
}

}  // namespace gpups::kernels
