// SPDX-License-Identifier: Apache-2.0
#include "kernels/add_elements.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, AddElements const& a) {
  GPUPS_ASSERT(a.indices.size() == a.values.size());
  each(ex, a.indices.size(), [a] GPUPS_FN(std::size_t i) {
    std::uint64_t const at = a.indices[i] - a.first;  // huge where the index is below `first`
    if (at < a.into.size()) a.into[at] += a.values[i];
  });
}

template <Space S>
void run(Exec<S> ex, CountBelow const& c) {
  GPUPS_ASSERT(c.bounds.size() == c.counts.size());
  each(ex, c.bounds.size(), [c] GPUPS_FN(std::size_t k) {
    std::size_t low = 0, high = c.indices.size();
    while (low < high) {
      std::size_t const middle = (low + high) / 2;
      if (c.indices[middle] < c.bounds[k]) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    c.counts[k] = low;
  });
}

GPUPS_KERNEL(add_elements, AddElements)
GPUPS_KERNEL(count_below, CountBelow)

}  // namespace gpups::kernels
