// SPDX-License-Identifier: Apache-2.0
#include "kernels/unique_keys.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"
#ifdef __CUDACC__
#include "kernels/unique_keys_device.hpp"
#else
#include "kernels/unique_keys_host.hpp"
#endif

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, UniqueKeys const& u) {
  GPUPS_ASSERT(u.keys.size() < std::size_t{1} << 28 && u.homes > 0);
  GPUPS_ASSERT(u.unique.size() >= u.keys.size() && u.positions.size() >= u.keys.size());
  GPUPS_ASSERT(u.home_offsets.size() == u.homes + std::size_t{1} && u.home_offsets.device().is_host());
  unique_keys(ex, u);
}

GPUPS_KERNEL(wait_unique_keys, UniqueKeys)

}  // namespace gpups::kernels
