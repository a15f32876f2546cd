// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/comparison.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "comm/collective/median.hpp"

namespace gpups::comm {

std::optional<Comparison::Result> Comparison::learn(Sum const& sum) {
  if (!sum.right_after) before_ = between_ = now_ = {};
  if (now_.way != sum.way) {
    before_ = std::exchange(between_, std::exchange(now_, {sum.way, {}}));
  }
  if (sum.counts) now_.seconds.push_back(sum.seconds);
  if (now_.seconds.size() > kMost) now_.seconds.erase(now_.seconds.begin());
  // As many sums of the other after it as of the one, and no more of those before it.
  std::size_t const sums = between_.seconds.size();
  bool const is_over = sums > 0 && now_.seconds.size() >= sums && before_.way == sum.way && !before_.seconds.empty();
  if (!is_over) return std::nullopt;
  std::vector<double> around = now_.seconds;
  std::size_t const before = std::min(before_.seconds.size(), sums);
  std::copy_n(before_.seconds.rbegin(), before, std::back_inserter(around));
  Result const result{between_.way, sum.way, median(between_.seconds) / median(std::move(around))};
  before_ = between_ = {};  // they were compared
  return result;
}

}  // namespace gpups::comm
