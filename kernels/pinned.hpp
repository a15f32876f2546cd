// SPDX-License-Identifier: Apache-2.0
// Host memory that a GPU reads and writes without a copy between: for staging. Ordinary memory where there is no GPU.
#pragma once

#include <cstddef>
#include <memory>

namespace gpups::kernels {

struct PinnedDelete {
  void operator()(std::byte* block) const noexcept;
};
using PinnedPtr = std::unique_ptr<std::byte[], PinnedDelete>;

// Throws Error where there is no memory.
PinnedPtr allocate_pinned(std::size_t bytes);

}  // namespace gpups::kernels
