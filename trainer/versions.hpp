// SPDX-License-Identifier: Apache-2.0
// The version of this program and the options of its build.
#pragma once

#include <nlohmann/json.hpp>

namespace gpups::trainer {

// Returns {"gpups": "0.1.0", "host_arch": "native", "cuda_architectures": "80;90", "compiler": "..."}.
nlohmann::json versions();

}  // namespace gpups::trainer
