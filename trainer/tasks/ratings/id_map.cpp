// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/id_map.hpp"

#include "kernels/base/hash.hpp"

namespace gpups::trainer {

std::uint32_t IdMap::add(std::uint64_t id) {
  if (2 * (keys_.size() + 1) > slots_.size()) grow();
  std::size_t const mask = slots_.size() - 1;
  for (std::size_t at = kernels::mix(id) & mask;; at = (at + 1) & mask) {
    if (slots_[at] == 0) {
      keys_.push_back(Key{id});
      slots_[at] = static_cast<std::uint32_t>(keys_.size());
    } else if (keys_[slots_[at] - 1] != Key{id}) {
      continue;
    }
    return slots_[at] - 1;
  }
}

void IdMap::grow() {
  slots_.assign(slots_.empty() ? 1024 : 2 * slots_.size(), 0);
  std::size_t const mask = slots_.size() - 1;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    std::size_t at = kernels::mix(number(keys_[i])) & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace gpups::trainer
