// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/count_entries.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

struct CountEntriesOfAll {
  std::span<CountEntries const> parts;
};

template <Space S>
void run(Exec<S> ex, CountEntriesOfAll const& all) {
  for ([[maybe_unused]] auto const& c : all.parts) GPUPS_ASSERT(c.counts.size() >= c.rows.size());
  SegmentList const list(ex, std::vector(all.parts.begin(), all.parts.end()),
                         [](CountEntries const& c) { return c.counts.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(CountEntries const& c, std::size_t i) {
    c.counts[i] = i < c.rows.size() ? std::int64_t{c.offsets[c.rows[i] + 1] - c.offsets[c.rows[i]]} : 0;
  });
}

GPUPS_KERNEL(count_entries_of_all, CountEntriesOfAll)

#ifndef __CUDACC__
void count_entries(Stream& stream, std::span<CountEntries const> parts) { count_entries_of_all(stream, {parts}); }
#endif

}  // namespace gpups::kernels
