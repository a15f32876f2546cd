// SPDX-License-Identifier: Apache-2.0
// What settings are where nobody gives them, if it depends on others that are given.
#pragma once

#include <string>

#include "trainer/config.hpp"

namespace gpups::trainer {

Config usual_for(std::string const& reader);

// Sets init and init_scale of `usual` where they depend on the model.
void set_usual_range(ModelConfig const& model, ModelConfig& usual);

}  // namespace gpups::trainer
