// SPDX-License-Identifier: Apache-2.0
#include "comm/group/sums.hpp"

#include "kernels/check.hpp"

namespace gpups::comm {

Reducer& reducer_of(Group::Impl const& group, char const* call) {
  GPUPS_REQUIRE(group.reducer != nullptr,
                "{} was called on a membership without a Store (its protocol carries the sums): make the Store first, "
                "and keep it until all sums are waited for",
                call);
  return *group.reducer;
}

void check_devices(Group::Impl const& group, std::initializer_list<Device> devices, char const* call) {
  auto const& reducer = reducer_of(group, call);
  for (Device const device : devices) {
    GPUPS_REQUIRE(device == reducer.device(),
                  "{} was given an array or a stream on {} and the store is on {} (they are summed there): "
                  "use an array and a stream of the store's device",
                  call, to_string(device), to_string(reducer.device()));
  }
}

namespace {

// Whether there is one depends on what this rank has kept, not on when its sums end: the same on all ranks.
void wait_for_place(Group::Impl& group, Reducer& reducer) {
  while (group.sums.count() >= Group::kAllreducesMax) {
    auto const abandoned = group.sums.abandoned();
    if (abandoned == nullptr && group.sums.count() < Group::kAllreducesMax) return;  // it has ended meanwhile
    GPUPS_REQUIRE(abandoned != nullptr,
                  "{} sums are under way (each takes memory on all ranks): wait for one before the next is begun",
                  Group::kAllreducesMax);
    reducer.wait_collective(*abandoned);
  }
}

}  // namespace

void wait_check_sum(Group::Impl& group, std::initializer_list<Device> devices, std::uint64_t elements, char const* what,
                    char const* call) {
  check_devices(group, devices, call);
  GPUPS_REQUIRE(elements <= kSumElementsMax, "{} {} are summed at once (the most is {}): do it in parts", elements,
                what, kSumElementsMax);
  wait_for_place(group, reducer_of(group, call));
}

std::shared_ptr<void const> begin_sum(Group::Impl& group, Stream& stream, std::shared_ptr<Collective> const& sum,
                                      char const* call) {
  sum->given = stream.record();
  if (group.transport->size() > 1) reducer_of(group, call).begin_collective(sum);
  return group.sums.add(sum);
}

void wait_sum(Group::Impl& group, Stream& stream, Collective const& sum, char const* call) {
  auto& reducer = reducer_of(group, call);
  if (group.transport->size() > 1) {
    reducer.wait_collective(sum);
    stream.after(sum.ended);
  }
  group.sums.remove(sum);
}

}  // namespace gpups::comm
