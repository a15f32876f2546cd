// SPDX-License-Identifier: Apache-2.0
// Pinned host memory, which GPUs read and write without a further copy. It is used for staging.
#pragma once

#include <cstddef>
#include <memory>

#include "gpups/device.hpp"

namespace gpups::kernels {

struct PinnedDelete {
  bool is_pinned = false;
  void operator()(std::byte* block) const noexcept;
};
using PinnedPtr = std::unique_ptr<std::byte[], PinnedDelete>;

// Allocates pinned memory for data of a device; ordinary memory if that is the host. Throws Error if there is not
// enough.
PinnedPtr allocate_pinned(Device device, std::size_t bytes);

}  // namespace gpups::kernels
