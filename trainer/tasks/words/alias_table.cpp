// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/alias_table.hpp"

#include <algorithm>
#include <numeric>

namespace gpups::trainer {

AliasTable::AliasTable(std::span<double const> weights) : slots_(weights.size()) {
  double const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  auto const slots = static_cast<double>(weights.size());
  std::vector<double> left(weights.size());  // what each number still needs, in slots
  std::vector<std::uint32_t> small, large;   // numbers that need less than a slot, and the others
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    left[i] = weights[i] / sum * slots;
    (left[i] < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    std::uint32_t const less = small.back(), more = large.back();
    small.pop_back();
    slots_[less] = {static_cast<std::uint32_t>(std::min(left[less] * 0x1p32, 0x1p32 - 1)), more};
    left[more] -= 1 - left[less];
    if (left[more] >= 1) continue;
    large.pop_back();
    small.push_back(more);
  }
  for (auto const* rest : {&small, &large}) {
    for (std::uint32_t const i : *rest) slots_[i] = {0xFFFFFFFF, i};
  }
}

}  // namespace gpups::trainer
