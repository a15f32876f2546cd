// SPDX-License-Identifier: Apache-2.0
#include "comm/group/collective_resources.hpp"

#include "comm/collectives/collectives.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {

void CollectiveDevice::set(Device device, Source source) {
  if (device_) return;
  device_ = device;
  source_ = source;
}

void CollectiveDevice::check_store(Device device) const {
  if (!device_) return;
  GPUPS_REQUIRE(
      source_ != Source::kConnect || *device_ == device,
      "a Store on {} is created after wait_connect_devices() was called for {} (it connects the device of the "
      "Store): use the same device for both",
      to_string(device), to_string(*device_));
  GPUPS_REQUIRE(*device_ == device,
                "a Store on {} is created, but the collectives of this rank are on {} (all data of a rank are on one "
                "device): create the Store on the device of the first collective, or before it",
                to_string(device), to_string(*device_));
}

void CollectiveDevice::check_connect() const {
  bool const by_store = source_ == Source::kStore;
  GPUPS_REQUIRE(!device_ || source_ == Source::kConnect,
                "wait_connect_devices was called {} (data use the current connections already): {}",
                by_store ? "after a Store was created" : "after a collective was started",
                by_store ? "create the Store later" : "call it before the first collective");
}

void CollectiveDevice::check_collective(Device device, char const* call) const {
  if (!device_ || *device_ == device) return;
  char const* const who = source_ == Source::kStore     ? "the store is on"
                          : source_ == Source::kConnect ? "wait_connect_devices() was called for"
                                                        : "the first collective of this rank was on";
  GPUPS_REQUIRE(false,
                "{} was given an array or a stream on {}, but {} {} (all collectives of a rank use one device): use an "
                "array and a stream of {}",
                call, to_string(device), who, to_string(*device_),
                source_ == Source::kStore ? "the store's device" : "that device");
}

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
