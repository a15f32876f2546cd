// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/pinned.hpp"

#include <cstdlib>

#include "kernels/base/check.hpp"
#include "kernels/runtime/cuda_runtime.hpp"

namespace gpups::kernels {
namespace {

constexpr std::size_t kAlign = 4096;

}  // namespace

void PinnedDelete::operator()(std::byte* block) const noexcept {
  is_pinned ? cuda::release_pinned(block) : std::free(block);
}

PinnedPtr allocate_pinned(Device device, std::size_t bytes) {
  bool const is_pinned = !device.is_host();
  void* const block = is_pinned ? cuda::allocate_pinned(device.index, bytes)
                                : std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  GPUPS_REQUIRE(block != nullptr,
                "no pinned memory of the host for {} bytes (data of GPUs are copied through it): use fewer ranks",
                bytes);
  return PinnedPtr(static_cast<std::byte*>(block), PinnedDelete{is_pinned});
}

}  // namespace gpups::kernels
