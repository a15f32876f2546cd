// SPDX-License-Identifier: Apache-2.0
// Cells of a line of click data, each read on its own: the careful way, for cells that are not of the usual form.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/click/layout.hpp"

namespace gpups::trainer {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

// The first '\t' or '\n' from `at` on. REQUIRES: there is one, and 8 bytes behind it can be read.
char const* end_of_cell(char const* at);

// Each returns what is wrong with the cell in words that follow "the line", or nothing and sets or adds what it says.
std::string read_label(std::string_view cell, float& label);
std::string read_number(std::string_view cell, std::string_view column, float& number);
// Adds ids to `values` and, where not null, as many to `weights`.
std::string read_values(std::string_view cell, CategoryField const& field, std::vector<std::uint64_t>& values,
                        std::vector<float>* weights);

}  // namespace gpups::trainer
