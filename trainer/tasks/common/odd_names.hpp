// SPDX-License-Identifier: Apache-2.0
// Names that programs write in place of missing values, or of whole, padded or long numbers.
#pragma once

#include <string>
#include <vector>

#include "trainer/input/dictionary.hpp"

namespace gpups::trainer {

// Adds a notice for each kind of such names that a dictionary has: "NULL" or "nan", "1.0" or "001" beside
// "1", and "7.65614E+16".
void say_odd_names(Dictionary const& names, std::vector<std::string>& notices);

}  // namespace gpups::trainer
