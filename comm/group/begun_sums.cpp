// SPDX-License-Identifier: Apache-2.0
#include "comm/group/begun_sums.hpp"

#include "comm/collective/collectives.hpp"

namespace gpups::comm {

std::shared_ptr<void const> BegunSums::add(std::shared_ptr<Collective> const& sum) {
  auto const owner = std::make_shared<char>();
  all_.push_back({sum, owner});
  return owner;
}

void BegunSums::remove(Collective const& sum) {
  std::erase_if(all_, [&](Begun const& begun) { return begun.sum.lock().get() == &sum; });
}

std::size_t BegunSums::count() {
  std::erase_if(all_, [](Begun const& begun) {
    if (!begun.owner.expired()) return false;
    auto const sum = begun.sum.lock();
    return sum == nullptr || sum->done;
  });
  return all_.size();
}

std::shared_ptr<Collective> BegunSums::abandoned() const {
  for (auto const& begun : all_) {
    if (!begun.owner.expired()) continue;
    if (auto sum = begun.sum.lock()) return sum;
  }
  return nullptr;
}

}  // namespace gpups::comm
