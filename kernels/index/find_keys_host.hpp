// SPDX-License-Identifier: Apache-2.0
// Finds keys in many indices on the host, a block of keys at a time.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/index/index_keys.hpp"
#include "kernels/index/key_search_host.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

inline void find_keys(HostExec ex, FindKeys const& f) {
  constexpr std::size_t kBlock = KeySearch::kPending;
  auto const blocks_of = [](KeysOfIndex const& index) { return (index.keys.size() + kBlock - 1) / kBlock; };
  GPUPS_ASSERT(f.missing.empty() || f.missing.size() == f.indices.size());
  std::size_t blocks = 0;
  for (auto const& index : f.indices) blocks += blocks_of(index);
  ex.arena->blocks(blocks, [&](std::size_t block) {
    auto const* index = f.indices.data();
    for (; block >= blocks_of(*index); ++index) block -= blocks_of(*index);
    std::size_t const first = block * kBlock, count = std::min(kBlock, index->keys.size() - first);
    std::uint32_t* const ids = index->ids.data() + first;
    KeySearch search;
    search.begin(index->buckets, index->keys.slice(first, count), ids, kBlock - 1);
    search.look<true>(count);
    search.finish(count);
    if (f.missing.empty()) return;
    std::uint32_t missing = 0;
    for (std::size_t k = 0; k < count; ++k) missing += ids[k] == kNoRow ? 1 : 0;
    if (missing != 0) atomic_add(&f.missing[static_cast<std::size_t>(index - f.indices.data())], missing);
  });
}

}  // namespace gpups::kernels
