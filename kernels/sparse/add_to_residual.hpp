// SPDX-License-Identifier: Apache-2.0
// The pass of top-k with error feedback over a vector: adds the gradient of a step to the residual, and lists the
// elements of the residual that are selected.
#pragma once

#include <atomic>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Elements of a block stay in a core's caches.
inline constexpr std::size_t kResidualBlock = 8192;
constexpr std::size_t residual_blocks(std::size_t n) { return (n + kResidualBlock - 1) / kResidualBlock; }

// Gradients are below this many units, so that no sum of 100,000 steps leaves 64 bits.
inline constexpr double kGradientUnitsMost = 0x1p46;

// The positions of large elements, in pieces: one for each block of the vector.
class LargeElements {
 public:
  // For a vector of n elements, of which at most `most` can be listed.
  LargeElements(std::size_t n, std::size_t most) : list_(Device::host(), most), pieces_(residual_blocks(n)) {}

  // Lists elements of a block. May be called by several threads at once, for different blocks.
  void add(std::size_t block, std::uint32_t const* places, std::size_t some);
  // Returns the number of elements of all blocks. If it exceeds the size of the list, they did not fit.
  std::size_t count() const { return count_; }
  // Returns all positions, ascending. REQUIRES: they fit.
  Array<std::uint32_t> in_order() const;

 private:
  struct Piece {
    std::size_t first = 0, count = 0;
  };
  Array<std::uint32_t> list_;
  std::vector<Piece> pieces_;
  std::atomic<std::size_t> count_ = 0;
};

// T: float, or std::int64_t for gradients in units of the grid.
template <class T>
struct AddToResidual {
  View<T const> gradient;       // (n)
  View<float> velocity;         // (n), or empty without momentum
  View<std::int64_t> residual;  // (n)
  float momentum;
  double per_unit;     // units per 1, a power of 2
  std::int64_t bound;  // the smallest magnitude that is listed; 0: none is
  LargeElements* found;
};
// Returns n, or the first element whose gradient is not finite or out of range; residual and velocity are then invalid.
// REQUIRES: a host stream.
template <class T>
std::size_t wait_add_to_residual(Stream& stream, AddToResidual<T> const& arguments);

}  // namespace gpups::kernels
