// SPDX-License-Identifier: Apache-2.0
// Columns of numbers that are large beside their differences, such as dates of a month or times of a day: numbers and
// their logarithms have 32 bits, so what distinguishes samples is lost.
#pragma once

#include <string>
#include <vector>

#include "trainer/tasks/click/click_data.hpp"

namespace gpups::trainer {

// Adds a notice for each such column. Its numbers have fewer than 128 different logarithms, and at least twice as many
// different values, or they are all one number of more than seven digits. Logarithms of counts, prices, ages and years
// differ where the numbers do, and wide ranges have more logarithms; a number that stands for a missing one changes
// little. Looks at about 2^16 samples of evenly spaced blocks. columns: with names for messages.
void say_lost_digits(Split const& train, SameColumns const& columns, std::vector<std::string>& notices);

}  // namespace gpups::trainer
