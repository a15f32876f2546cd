// SPDX-License-Identifier: Apache-2.0
#include "comm/group/inflight_collectives.hpp"

#include "comm/collectives/collectives.hpp"

namespace gpups::comm {

std::shared_ptr<void const> InflightCollectives::add(std::shared_ptr<CollectiveTask> const& collective) {
  auto const owner = std::make_shared<char>();
  all_.push_back({collective, owner});
  return owner;
}

void InflightCollectives::remove(CollectiveTask const& collective) {
  std::erase_if(all_, [&](Inflight const& inflight) { return inflight.collective.lock().get() == &collective; });
}

std::size_t InflightCollectives::count() {
  std::erase_if(all_, [](Inflight const& inflight) {
    if (!inflight.owner.expired()) return false;
    auto const collective = inflight.collective.lock();
    return collective == nullptr || collective->done;
  });
  return all_.size();
}

std::shared_ptr<CollectiveTask> InflightCollectives::abandoned() const {
  for (auto const& inflight : all_) {
    if (!inflight.owner.expired()) continue;
    if (auto collective = inflight.collective.lock()) return collective;
  }
  return nullptr;
}

}  // namespace gpups::comm
