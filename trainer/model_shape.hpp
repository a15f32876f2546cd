// SPDX-License-Identifier: Apache-2.0
// How large the parts of a model are that a configuration describes: known before any data is read.
#pragma once

#include <cstddef>
#include <string>

#include "trainer/config.hpp"

namespace gpups::trainer {

struct ModelShape {
  std::size_t widest_row = 0;     // numbers in a row, of the table where it has most
  std::size_t largest_layer = 0;  // Parameter::size() of the largest; 0: there are no dense layers
};

// Throws Error for settings of what travels that would have no effect on the configuration's model. For new runs: one
// that goes on has to keep what it was begun with. name: of the file, for messages.
void require_effect(Config const& config, std::string const& name);

}  // namespace gpups::trainer
