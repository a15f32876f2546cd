// SPDX-License-Identifier: Apache-2.0
#include "trainer/versions.hpp"

#include "kernels/build_config.hpp"

namespace gpups::trainer {

nlohmann::json versions() {
  return {{"gpups", GPUPS_VERSION},
          {"host_arch", GPUPS_HOST_ARCH},
          {"cuda_architectures", kHasCuda ? GPUPS_CUDA_ARCHITECTURES : ""},
          {"compiler", "g++ " __VERSION__}};
}

}  // namespace gpups::trainer
