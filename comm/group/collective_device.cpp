// SPDX-License-Identifier: Apache-2.0
#include "comm/group/collective_device.hpp"

#include "kernels/check.hpp"

namespace gpups::comm {

void CollectiveDevice::set(Device device, Source source) {
  if (device_) return;
  device_ = device;
  source_ = source;
}

void CollectiveDevice::check_store(Device device) const {
  if (!device_) return;
  GPUPS_REQUIRE(source_ != Source::kConnect || *device_ == device,
                "a Store on {} is made on a membership whose wait_connect_devices() was called for {} (the ranks would "
                "not agree on how data go): call both for the same device",
                to_string(device), to_string(*device_));
  GPUPS_REQUIRE(*device_ == device,
                "a Store on {} is made on a membership whose collectives are on {} (all data of a rank go from one "
                "device): make the Store on the device of the first collective, or before it",
                to_string(device), to_string(*device_));
}

void CollectiveDevice::check_connect() const {
  bool const by_store = source_ == Source::kStore;
  GPUPS_REQUIRE(!device_ || source_ == Source::kConnect,
                "wait_connect_devices was called on a membership {} (its data go their ways already): {}",
                by_store ? "with a Store" : "that has begun a collective",
                by_store ? "make the Store later" : "call it before the first collective");
}

void CollectiveDevice::check_collective(Device device, char const* call) const {
  if (!device_ || *device_ == device) return;
  char const* const who = source_ == Source::kStore     ? "the store is on"
                          : source_ == Source::kConnect ? "wait_connect_devices() was called for"
                                                        : "the first collective of this rank was on";
  GPUPS_REQUIRE(false,
                "{} was given an array or a stream on {} and {} {} (all collectives of a rank use one device): use an "
                "array and a stream of {}",
                call, to_string(device), who, to_string(*device_),
                source_ == Source::kStore ? "the store's device" : "that device");
}

}  // namespace gpups::comm
