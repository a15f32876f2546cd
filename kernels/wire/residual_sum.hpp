// SPDX-License-Identifier: Apache-2.0
// A vector that is to be made sparse, on the host: values, or their sum with a residual, which the first pass over all
// blocks makes in the residual's place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/launch.hpp"
#include "kernels/wire/find_above_threshold.hpp"

namespace gpups::kernels {

class ResidualSum {
 public:
  ResidualSum(View<float const> values, View<float> residual)  // the latter may be empty
      : values_(values.data()), residual_(residual.empty() ? nullptr : residual.data()), size_(values.size()) {}

  std::size_t size() const { return size_; }
  std::size_t blocks() const { return (size_ + kThresholdBlock - 1) / kThresholdBlock; }
  float at(std::size_t i) const {
    if (residual_ == nullptr) return values_[i];
    return added_ ? residual_[i] : values_[i] + residual_[i];
  }
  // Asks for elements that at() will be called for.
  void prefetch(std::size_t first, std::size_t count) const {
    for (std::size_t i : {first, first + count - 1}) {
      __builtin_prefetch(values_ + i);
      if (residual_ != nullptr) __builtin_prefetch(residual_ + i);
    }
  }
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
  // All blocks have been asked for.
  void set_added() { added_ = true; }
  void add(HostExec ex) {
    ex.arena->blocks(blocks(), [&](std::size_t b) { block(b); });
    set_added();
  }
  // Changes the residual, if there is one.
  void set(std::size_t i, float x) const {
    if (residual_ != nullptr) residual_[i] = x;
  }
  // The same where `if_so`, without a branch for it.
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
