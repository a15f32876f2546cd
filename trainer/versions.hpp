// SPDX-License-Identifier: Apache-2.0
// What this program was built from and for.
#pragma once

#include <nlohmann/json.hpp>

namespace gpups::trainer {

// {"gpups": "0.1.0", "host_arch": "native", "cuda_architectures": "80;90", "compiler": "..."}
nlohmann::json versions();

}  // namespace gpups::trainer
