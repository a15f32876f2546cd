// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/gather_keys.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, GatherKeys const& t) {
  GPUPS_ASSERT(t.to.size() >= t.numbers.size());
  each(ex, t.numbers.size(), [t] GPUPS_FN(std::size_t i) { t.to[i] = t.from[t.numbers[i]]; });
}

GPUPS_KERNEL(gather_keys, GatherKeys)

}  // namespace gpups::kernels
