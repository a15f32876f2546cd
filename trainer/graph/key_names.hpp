// SPDX-License-Identifier: Apache-2.0
// Names beside the keys in a message of the store, which knows no names.
#pragma once

#include <string>

#include "trainer/graph/dataset.hpp"

namespace gpups::trainer {

// "... key 123 in table 'entities' ..." becomes "... key 123 ('dog.n.01') in table 'entities' ...". Costs a look at
// every key; a message that names no key stays as it is.
std::string with_names(std::string message, Dataset const& data);

}  // namespace gpups::trainer
