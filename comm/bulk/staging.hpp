// SPDX-License-Identifier: Apache-2.0
// A pool of pinned host memory, through which data of a GPU are sent and received.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/runtime/host_memory.hpp"

namespace gpups::comm {

// Large data are staged in pieces of so many bytes, and at most so many at a time in each direction.
inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
inline constexpr std::size_t kPiecesMax = 4;

// Buffers of one size. They are allocated when they are first needed, and kept.
class Staging {
 public:
  explicit Staging(std::size_t bytes, std::size_t buffers_max = ~std::size_t{0})
      : bytes_(bytes), buffers_max_(buffers_max) {}

  // Returns a buffer for data of the device; null if all are in use. Throws Error if there is no memory.
  kernels::PinnedPtr take(Device device) {
    if (!free_.empty()) {
      auto buffer = std::move(free_.back());
      free_.pop_back();
      return buffer;
    }
    if (allocated_ == buffers_max_) return nullptr;
    auto buffer = kernels::allocate_pinned(device, bytes_);
    ++allocated_;
    return buffer;
  }
  void give_back(kernels::PinnedPtr buffer) { free_.push_back(std::move(buffer)); }

 private:
  std::size_t const bytes_, buffers_max_;
  std::vector<kernels::PinnedPtr> free_;
  std::size_t allocated_ = 0;
};

}  // namespace gpups::comm
