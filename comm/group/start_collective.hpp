// SPDX-License-Identifier: Apache-2.0
// The common steps of all collectives of a group, for the thread that starts them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "comm/collectives/collectives.hpp"
#include "comm/group/group_impl.hpp"
#include "kernels/runtime/require_memory.hpp"

namespace gpups::comm {

// Checks that all devices are that of the rank's collectives. Throws Error. call: the function that the user called,
// for the error text.
void check_devices(Group::Impl const& group, std::initializer_list<Device> devices, char const* call);
// Checks what all collectives need: one device, which the first collective sets, not too many elements, and a free
// place. Throws Error. If all places are in use, blocks until an abandoned collective has ended.
void wait_check_collective(Group::Impl& group, std::initializer_list<Device> devices, std::uint64_t elements,
                           char const* what, char const* call);
// Returns the device of an array that was given to `call`; that of the stream if the array is empty. Throws Error for a
// null address.
template <class T>
Device device_of(Stream& stream, View<T> input, char const* call, char const* what) {
  kernels::require_memory(input, call, what);
  return input.empty() ? stream.device() : input.device();
}

// Starts a collective; a rank that is alone runs nothing. Keep the returned owner and call wait_result() once. If the
// owner is destroyed earlier, the collective is abandoned: it ends, and its result is lost.
[[nodiscard]] std::shared_ptr<void const> start_collective(Group::Impl& group, Stream& stream,
                                                           std::shared_ptr<CollectiveTask> const& sum);
// Blocks until the collective has ended. Work that is queued on `stream` afterwards may read its results.
void wait_result(Group::Impl& group, Stream& stream, CollectiveTask const& sum);

// Returns the number of cores for host streams of a rank: an even share among the ranks of its machine that use the
// same cores.
int share_of_cores(Group::Impl const& group);

}  // namespace gpups::comm
