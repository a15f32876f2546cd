// SPDX-License-Identifier: Apache-2.0
#include "kernels/count_entries.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, CountEntries const& c) {
  GPUPS_ASSERT(c.counts.size() >= c.rows.size());
  each(ex, c.counts.size(), [c] GPUPS_FN(std::size_t i) {
    c.counts[i] = i < c.rows.size() ? std::int64_t{c.offsets[c.rows[i] + 1] - c.offsets[c.rows[i]]} : 0;
  });
}

GPUPS_KERNEL(count_entries, CountEntries)

}  // namespace gpups::kernels
