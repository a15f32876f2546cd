// SPDX-License-Identifier: Apache-2.0
// Finds the right word behind a mistyped one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// Insertions, deletions and replacements of a character that turn `a` into `b`. Costs |a| * |b|.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The first of `words` with the smallest distance. REQUIRES: !words.empty().
std::string nearest_word(std::string_view word, std::vector<std::string> const& words);

}  // namespace gpups::trainer
