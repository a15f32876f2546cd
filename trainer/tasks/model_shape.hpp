// SPDX-License-Identifier: Apache-2.0
// Sizes of a model that are known from its configuration, before any data is read.
#pragma once

#include <cstddef>
#include <string>

#include "trainer/config/config.hpp"

namespace gpups::trainer {

// The largest parts of a model.
struct ModelShape {
  std::size_t widest_row = 0;     // largest dim of all tables
  std::size_t largest_layer = 0;  // Parameter::size() of the largest layer; 0: the model has no dense layers
};

// Throws Error if a setting of [gradient_compression] or [dense] compresses nothing in the configuration's model. For
// new runs only: a resumed run must keep its settings. name: the configuration file, for messages.
void require_effect(Config const& config, std::string const& name);

}  // namespace gpups::trainer
