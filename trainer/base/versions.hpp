// SPDX-License-Identifier: Apache-2.0
// The version of this program and the options of its build.
#pragma once

#include <nlohmann/json.hpp>

namespace gpups::trainer {

// Returns {"gpups": "0.1.0", "host_arch": "portable", "host_levels": ["x86-64-v3", "x86-64-v4"],
// "host_level": "x86-64-v4", "cuda_architectures": "80;90", "compiler": "..."}. Throws Error if GPUPS_HOST_LEVEL is not
// a level.
nlohmann::json versions();

}  // namespace gpups::trainer
