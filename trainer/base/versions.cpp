// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/versions.hpp"

#include "kernels/base/build_config.hpp"
#include "kernels/base/host_level.hpp"

namespace gpups::trainer {

nlohmann::json versions() {
  return {{"gpups", GPUPS_VERSION},
          {"host_arch", GPUPS_HOST_ARCH},
          {"host_levels", kernels::host_levels()},
          {"host_level", kernels::host_level_name()},
          {"cuda_architectures", kHasCuda ? GPUPS_CUDA_ARCHITECTURES : ""},
          {"compiler", "g++ " __VERSION__}};
}

}  // namespace gpups::trainer
