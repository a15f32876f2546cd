// SPDX-License-Identifier: Apache-2.0
// A bounded pool of pinned host memory, through which data of a GPU are sent and received.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/pinned.hpp"

namespace gpups::comm {

inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
inline constexpr std::size_t kPiecesMax = 4;  // for each direction

// Allocates pieces when they are first needed.
class Staging {
 public:
  // Returns a piece of kPieceBytes bytes; null if all are in use.
  kernels::PinnedPtr take() {
    if (!free_.empty()) {
      auto piece = std::move(free_.back());
      free_.pop_back();
      return piece;
    }
    if (made_ == kPiecesMax) return nullptr;
    ++made_;
    return kernels::allocate_pinned(kPieceBytes);
  }
  void give_back(kernels::PinnedPtr piece) { free_.push_back(std::move(piece)); }

 private:
  std::vector<kernels::PinnedPtr> free_;
  std::size_t made_ = 0;
};

}  // namespace gpups::comm
