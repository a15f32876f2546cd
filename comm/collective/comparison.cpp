// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/comparison.hpp"

#include <algorithm>
#include <utility>

namespace gpups::comm {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::optional<Comparison::Result> Comparison::learn(Algorithm const* algorithm, double seconds, bool counts,
                                                    bool right_after) {
  if (!right_after) before_ = between_ = now_ = {};
  if (now_.algorithm != algorithm) {
    before_ = std::exchange(between_, std::exchange(now_, {algorithm, {}}));
  }
  if (counts) now_.seconds.push_back(seconds);
  if (now_.seconds.size() > kMost) now_.seconds.erase(now_.seconds.begin());
  // As many sums of the first way after it as of the other.
  std::size_t const sums = between_.seconds.size();
  bool const over =
      sums > 0 && now_.seconds.size() >= sums && before_.algorithm == algorithm && !before_.seconds.empty();
  if (!over) return std::nullopt;
  std::vector<double> around = now_.seconds;
  std::size_t const from = before_.seconds.size() - std::min(before_.seconds.size(), sums);
  around.insert(around.end(), before_.seconds.begin() + static_cast<std::ptrdiff_t>(from), before_.seconds.end());
  Result const result{between_.algorithm, algorithm, median(between_.seconds) / median(std::move(around)), sums};
  before_ = between_ = {};  // it was compared
  return result;
}

}  // namespace gpups::comm
