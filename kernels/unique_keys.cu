// SPDX-License-Identifier: Apache-2.0
#include "kernels/unique_keys.hpp"

#include "kernels/launch.hpp"
#ifdef __CUDACC__
#include "kernels/unique_keys_device.hpp"
#else
#include "kernels/unique_keys_host.hpp"
#endif

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, UniqueKeys const& u) {
  unique_keys(ex, u);
}

GPUPS_KERNEL(wait_unique_keys, UniqueKeys)

}  // namespace gpups::kernels
