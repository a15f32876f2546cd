// SPDX-License-Identifier: Apache-2.0
// Pinned host memory, which a GPU reads and writes without a further copy. It is used for staging. Without a GPU it is
// ordinary memory.
#pragma once

#include <cstddef>
#include <memory>

namespace gpups::kernels {

struct PinnedDelete {
  void operator()(std::byte* block) const noexcept;
};
using PinnedPtr = std::unique_ptr<std::byte[], PinnedDelete>;

// Allocates pinned memory. Throws Error if there is not enough.
PinnedPtr allocate_pinned(std::size_t bytes);

}  // namespace gpups::kernels
