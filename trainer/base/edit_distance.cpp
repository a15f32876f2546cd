// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/edit_distance.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/base/check.hpp"

namespace gpups::trainer {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances of a prefix of a to every prefix of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t const replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest_word(std::string_view word, std::vector<std::string> const& words) {
  GPUPS_ASSERT(!words.empty());
  return *std::min_element(words.begin(), words.end(), [word](std::string const& a, std::string const& b) {
    return edit_distance(word, a) < edit_distance(word, b);
  });
}

}  // namespace gpups::trainer
