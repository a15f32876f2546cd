// SPDX-License-Identifier: Apache-2.0
// The input of a sparsification, on the host: values, or their sum with a residual. The first pass over all blocks
// writes the sum to the residual.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/sparse/find_above_threshold.hpp"

namespace gpups::kernels {

// See above. block() may be called for different blocks by several threads at the same time.
class ResidualSum {
 public:
  ResidualSum(View<float const> values, View<float> residual)  // residual may be empty
      : values_(values.data()), residual_(residual.empty() ? nullptr : residual.data()), size_(values.size()) {}

  std::size_t size() const { return size_; }
  std::size_t blocks() const { return (size_ + kThresholdBlock - 1) / kThresholdBlock; }
  // Returns an element of the sum, before or after the first pass.
  float at(std::size_t i) const {
    if (residual_ == nullptr) return values_[i];
    return added_ ? residual_[i] : values_[i] + residual_[i];
  }
  // Prefetches elements for at().
  void prefetch(std::size_t first, std::size_t count) const {
    for (std::size_t i : {first, first + count - 1}) {
      __builtin_prefetch(values_ + i);
      if (residual_ != nullptr) __builtin_prefetch(residual_ + i);
    }
  }
  // Returns the elements of a block. In the first pass, adds its values to the residual; call it once for each block
  // then.
  View<float const> block(std::size_t b) const {
    std::size_t const first = b * kThresholdBlock, count = std::min(kThresholdBlock, size_ - first);
    if (residual_ == nullptr) return {values_ + first, count};
    float* const to = residual_ + first;
    float const* const from = values_ + first;
    if (!added_) {
#pragma GCC ivdep
      for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
    }
    return {to, count};
  }
  // Ends the first pass: block() has been called for all blocks.
  void set_added() { added_ = true; }
  // Does the whole first pass.
  void add(HostExec ex) {
    ex.arena->blocks(blocks(), [&](std::size_t b) { block(b); });
    set_added();
  }
  // Changes an element of the residual, if there is a residual.
  void set(std::size_t i, float x) const {
    if (residual_ != nullptr) residual_[i] = x;
  }
  // The same if `if_so`, without a branch.
  void set_if(bool if_so, std::size_t i, float x) const {
    if (residual_ == nullptr) return;
    float nowhere;
    *(if_so ? residual_ + i : &nowhere) = x;
  }

 private:
  float const* values_;
  float* residual_;
  std::size_t size_;
  bool added_ = false;
};

}  // namespace gpups::kernels
