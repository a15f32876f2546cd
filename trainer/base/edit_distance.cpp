// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/edit_distance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace gpups::trainer {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), before, before_that;  // distances of a prefix of a to every prefix of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_that = before, before = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t const replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, before[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_that[j - 2] + 1);
      }
    }
  }
  return row.back();
}

std::string bare_name(std::string_view name) {
  std::string bare;
  for (char const letter : name) {
    if (letter != '_' && letter != '-') bare += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return bare;
}

bool is_close(std::string_view word, std::string_view name) {
  constexpr std::size_t kBeginningLeast = 3;
  std::string const a = bare_name(word), b = bare_name(name);
  if (3 * edit_distance(a, b) <= std::max(a.size(), b.size())) return true;
  return a.size() >= kBeginningLeast && (b.starts_with(a) || (a.starts_with(b) && 2 * b.size() >= a.size()));
}

std::optional<std::string> close_word(std::string_view word, std::vector<std::string> const& words) {
  std::optional<std::string> best;
  std::size_t least = 0;
  for (std::string const& one : words) {
    if (!is_close(word, one)) continue;
    std::size_t const distance = edit_distance(bare_name(word), bare_name(one));
    if (!best || distance < least) best = one, least = distance;
  }
  return best;
}

std::string suggestion(std::string_view word, std::vector<std::string> const& words, std::string_view all_are) {
  auto const close = close_word(word, words);
  return close ? fmt::format("did you mean '{}'?", *close) : fmt::format("{} {}", all_are, fmt::join(words, ", "));
}

}  // namespace gpups::trainer
