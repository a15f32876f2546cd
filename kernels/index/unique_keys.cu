// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/unique_keys.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include "kernels/index/unique_keys_device.hpp"
#else
#include "kernels/index/unique_keys_host.hpp"
#endif

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, UniqueKeys const& u) {
  [[maybe_unused]] std::size_t entries = 0;
  for (KeyPart const& part : u.parts) {
    [[maybe_unused]] std::size_t const n = part.keys.size();
    GPUPS_ASSERT(part.unique.size() >= n && part.positions.size() >= n);
    GPUPS_ASSERT(part.home_offsets.size() == u.homes + std::size_t{1} && part.home_offsets.device().is_host());
    GPUPS_ASSERT(part.offsets.empty() ? part.order.empty() : part.offsets.size() > n && part.order.size() >= n);
    entries += n;
  }
  GPUPS_ASSERT(entries <= kUniqueKeysMax && u.homes > 0);
  unique_keys(ex, u);
}

GPUPS_KERNEL(wait_unique_keys, UniqueKeys)

}  // namespace gpups::kernels
