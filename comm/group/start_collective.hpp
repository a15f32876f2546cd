// SPDX-License-Identifier: Apache-2.0
// What all sums over the ranks of a group have in common, for the thread that begins them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "comm/collectives/collectives.hpp"
#include "comm/group/group_impl.hpp"
#include "kernels/require_memory.hpp"

namespace gpups::comm {

// All is on the device of the rank's collectives. Throws Error. `call` is what the user has called, for errors.
void check_devices(Group::Impl const& group, std::initializer_list<Device> devices, char const* call);
// What all sums need: one device, the rank's, which is known from the first one on, and a place. Throws Error. Where
// all places are taken, waits for the end of a sum that nobody can wait for any more.
void wait_check_collective(Group::Impl& group, std::initializer_list<Device> devices, std::uint64_t elements,
                           char const* what, char const* call);
// Where an array is that is given to `call`, for these checks. Throws Error where it is nowhere.
template <class T>
Device device_of(Stream& stream, View<T> input_ready, char const* call, char const* what) {
  kernels::require_memory(input_ready, call, what);
  return input_ready.empty() ? stream.device() : input_ready.device();
}

// Nothing is run where the rank is alone. A sum that is begun is waited for, once, by who keeps what this gives until
// then; where that goes earlier, the sum ends alone.
[[nodiscard]] std::shared_ptr<void const> start_collective(Group::Impl& group, Stream& stream,
                                                           std::shared_ptr<CollectiveTask> const& sum);
// Then what it has written can be read on `stream`.
void wait_result(Group::Impl& group, Stream& stream, CollectiveTask const& sum);

// How many cores a rank has for the work of a host stream, where it shares them evenly with the other ranks of its
// machine that may use the same.
int share_of_cores(Group::Impl const& group);

}  // namespace gpups::comm
