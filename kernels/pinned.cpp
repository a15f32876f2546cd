// SPDX-License-Identifier: Apache-2.0
#include "kernels/pinned.hpp"

#include <cstdlib>

#include "gpups/device.hpp"
#include "kernels/check.hpp"
#include "kernels/cuda_runtime.hpp"

namespace gpups::kernels {
namespace {

constexpr std::size_t kAlign = 4096;

// Returns whether there is a GPU. The result does not change during a process.
bool has_gpu() {
  static bool const has = cuda_device_count() > 0;
  return has;
}

}  // namespace

void PinnedDelete::operator()(std::byte* block) const noexcept {
  has_gpu() ? cuda::release_pinned(block) : std::free(block);
}

PinnedPtr allocate_pinned(std::size_t bytes) {
  void* const block =
      has_gpu() ? cuda::allocate_pinned(bytes) : std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  GPUPS_REQUIRE(block != nullptr,
                "no pinned memory of the host for {} bytes (data of GPUs are copied through it): use fewer ranks",
                bytes);
  return PinnedPtr(static_cast<std::byte*>(block));
}

}  // namespace gpups::kernels
