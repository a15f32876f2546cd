// SPDX-License-Identifier: Apache-2.0
// Host memory that GPUs copy to and from at full speed, in a bounded number of pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/pinned.hpp"

namespace gpups::comm {

inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
inline constexpr std::size_t kPiecesMax = 4;  // of each direction

class Staging {
 public:
  // A piece of kPieceBytes; null: all are in use, try again when one has been given back.
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
