// SPDX-License-Identifier: Apache-2.0
// All kinds of tasks: which readers and models belong to each. A new kind is an entry in tasks.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/model_shape.hpp"

namespace gpups::trainer {

std::vector<std::string> all_reader_names();
std::vector<std::string> all_model_names();
// Models that learn from what this reader reads.
std::vector<std::string> model_names_for(std::string_view reader);
// Of the model that the configuration describes. Throws Error where there can be none.
ModelShape model_shape(Config const& config);

}  // namespace gpups::trainer
