// SPDX-License-Identifier: Apache-2.0
// Finds the most similar word, for suggestions in error messages.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// Returns the least number of inserted, deleted and replaced characters, and of exchanged neighbours, that turn `a`
// into `b`. Takes O(|a| |b|) time.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns whether a name may have been meant by `word`: at most a third of the longer one's characters differ; or
// `word` has at least three and is the beginning of the name; or the name is the beginning of `word` and at least half
// of it. Capital letters, '_' and '-' do not count.
bool is_close(std::string_view word, std::string_view name);

// Returns the closest of `words` that may have been meant by `word`, or nothing.
std::optional<std::string> close_word(std::string_view word, std::vector<std::string> const& words);
// Returns the end of an error message: that word, in quotes, as in "did you mean 'dim'?", or else all words, as in
// "the keys of [data] are a, b".
std::string suggestion(std::string_view word, std::vector<std::string> const& words, std::string_view all_are);

// Returns a name in small letters, without '_' and '-'.
std::string bare_name(std::string_view name);

}  // namespace gpups::trainer
