// SPDX-License-Identifier: Apache-2.0
// Default values of settings that depend on other settings.
#pragma once

#include <string>

#include "trainer/config/config.hpp"

namespace gpups::trainer {

// Returns the defaults for data of this reader.
Config defaults_for(std::string const& reader);

// Sets init, init_scale and l2 of `defaults` if they depend on `model`.
void set_model_defaults(ModelConfig const& model, ModelConfig& defaults);

}  // namespace gpups::trainer
