// SPDX-License-Identifier: Apache-2.0
// Finds the most similar word, for suggestions in error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// Returns the least number of inserted, deleted and replaced characters that turn `a` into `b`. Takes O(|a| |b|) time.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the first of `words` with the smallest distance to `word`. REQUIRES: !words.empty().
std::string nearest_word(std::string_view word, std::vector<std::string> const& words);

}  // namespace gpups::trainer
