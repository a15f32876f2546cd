// SPDX-License-Identifier: Apache-2.0
// What settings are where nobody gives them, if it depends on others that are given.
#pragma once

#include <string>

#include "trainer/config.hpp"

namespace gpups::trainer {

Config defaults_for(std::string const& reader);

// Sets init and init_scale of `defaults` where they depend on the model.
void set_default_init(ModelConfig const& model, ModelConfig& defaults);

}  // namespace gpups::trainer
