// SPDX-License-Identifier: Apache-2.0
// Estimates the number of distinct keys from the smallest of their hashes (Bar-Yossef et al., "Counting distinct
// elements in a data stream", 2002). Takes 64 KiB of memory; the standard error is about 1.6 %.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/types.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::trainer {

// An estimate that keys are added to.
class DistinctCount {
 public:
  void add(Key key) {
    std::uint64_t const hash = kernels::mix(number(key));
    if (hash > most_) return;
    least_.push_back(hash);
    if (least_.size() == 2 * kKept) keep();
  }

  // Returns the estimate; it is exact for fewer than 4096 distinct keys.
  double count() {
    keep();
    if (least_.size() < kKept) return static_cast<double>(least_.size());
    return static_cast<double>(kKept - 1) / (static_cast<double>(least_.back()) * 0x1p-64);
  }

 private:
  static constexpr std::size_t kKept = 4096;

  // Keeps the kKept smallest distinct hashes, in ascending order.
  void keep() {
    std::sort(least_.begin(), least_.end());
    least_.erase(std::unique(least_.begin(), least_.end()), least_.end());
    if (least_.size() < kKept) return;
    least_.resize(kKept);
    most_ = least_.back();
  }

  std::vector<std::uint64_t> least_;
  std::uint64_t most_ = UINT64_MAX;  // larger hashes are not among the smallest
};

}  // namespace gpups::trainer
