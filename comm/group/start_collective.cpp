// SPDX-License-Identifier: Apache-2.0
#include "comm/group/start_collective.hpp"

#include <algorithm>

#include "kernels/arena.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {

void check_devices(Group::Impl const& group, std::initializer_list<Device> devices, char const* call) {
  for (Device const device : devices) {
    group.collective_device.check_collective(device, call);
    GPUPS_REQUIRE(device == *devices.begin(),
                  "{} was given a stream on {} and an array on {} (it cannot reach it): use an array and a stream of "
                  "one device",
                  call, to_string(*devices.begin()), to_string(device));
  }
}

namespace {

// Whether there is one depends on what this rank has kept, not on when its sums end: the same on all ranks.
void wait_for_free_place(Group::Impl& group) {
  while (group.inflight.count() >= Group::kAllreducesMax) {
    auto const abandoned = group.inflight.abandoned();
    if (abandoned == nullptr && group.inflight.count() < Group::kAllreducesMax) return;  // it has ended meanwhile
    GPUPS_REQUIRE(abandoned != nullptr,
                  "{} sums are under way (each takes memory on all ranks): wait for one before the next is begun",
                  Group::kAllreducesMax);
    group.collectives().wait(*abandoned, group.wait_limit());
  }
}

// For the work of sums. A Store has given its own.
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
  GPUPS_REQUIRE(elements <= kSumElementsMax, "{} {} are summed at once (the most is {}): do it in parts", elements,
                what, kSumElementsMax);
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
