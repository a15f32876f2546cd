// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/add_elements.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, AddElements const& a) {
  GPUPS_ASSERT(a.indices.size() == a.values.size());
  each(ex, a.indices.size(), [a] GPUPS_FN(std::size_t i) {
    std::uint64_t const at = a.indices[i] - a.first;  // wraps to a large number if the index is below `first`
    if (at < a.into.size()) a.into[at] += a.values[i];
  });
}

GPUPS_KERNEL(add_elements, AddElements)

}  // namespace gpups::kernels
