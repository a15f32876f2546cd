// SPDX-License-Identifier: Apache-2.0
#include "comm/group/start_collective.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "kernels/runtime/arena.hpp"

namespace gpups::comm {

void check_devices(Group::Impl const& group, std::initializer_list<Device> devices, char const* call) {
  for (Device const device : devices) {
    group.collective_device.check_collective(device, call);
    GPUPS_REQUIRE(
        device == *devices.begin(),
        "{} was given a stream on {} and an array on {} (the stream cannot reach the array): use an array and "
        "a stream of one device",
        call, to_string(*devices.begin()), to_string(device));
  }
}

namespace {

// Waits until a place is free. Whether this throws depends on the requests that this rank keeps, not on the time when
// its sums end, so it is the same on all ranks.
void wait_for_free_place(Group::Impl& group) {
  while (group.inflight.count() >= Group::kAllreducesMax) {
    auto const abandoned = group.inflight.abandoned();
    if (abandoned == nullptr && group.inflight.count() < Group::kAllreducesMax) return;  // one has ended meanwhile
    GPUPS_REQUIRE(abandoned != nullptr,
                  "{} sums are in flight (each takes memory on all ranks): wait for one before you begin the next",
                  Group::kAllreducesMax);
    group.collectives().wait(*abandoned, group.wait_limit());
  }
}

// Returns the stream for the work of collectives. A Store has set its own stream.
Stream const& stream_of_sums(Group::Impl& group, Device device) {
  auto& stream = group.collective_device.stream();
  if (!stream) stream.emplace(device, share_of_cores(group));
  return *stream;
}

}  // namespace

int share_of_cores(Group::Impl const& group) {
  return std::max(1, kernels::Arena(0).threads() / group.cores_shared_by);
}

void wait_check_collective(Group::Impl& group, std::initializer_list<Device> devices, std::uint64_t elements,
                           char const* what, char const* call) {
  check_devices(group, devices, call);
  GPUPS_REQUIRE(elements <= kSumElementsMax, "{} {} in one sum are too many (the most is {}): sum them in parts",
                elements, what, kSumElementsMax);
  group.collective_device.set_by_collective(*devices.begin());
  wait_for_free_place(group);
}

std::shared_ptr<void const> start_collective(Group::Impl& group, Stream& stream,
                                             std::shared_ptr<CollectiveTask> const& sum) {
  sum->input_ready = stream.record();
  if (group.transport->size() > 1) group.collectives().begin(sum, stream_of_sums(group, stream.device()));
  return group.inflight.add(sum);
}

void wait_result(Group::Impl& group, Stream& stream, CollectiveTask const& sum) {
  if (group.transport->size() > 1) {
    group.collectives().wait(sum, group.wait_limit());
    stream.after(sum.ended);
  }
  group.inflight.remove(sum);
}

}  // namespace gpups::comm
