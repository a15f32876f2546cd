// SPDX-License-Identifier: Apache-2.0
// Adds the name of a key to an error message of the store, which has keys only.
#pragma once

#include <string>

#include "trainer/tasks/graph/dataset.hpp"

namespace gpups::trainer {

// Returns "... key 123 ('dog.n.01') in table 'entities' ..." for "... key 123 in table 'entities' ...". Returns other
// messages unchanged. Compares all keys.
std::string with_names(std::string message, Dataset const& data);

}  // namespace gpups::trainer
