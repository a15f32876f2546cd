// SPDX-License-Identifier: Apache-2.0
// Held-out samples that training has seen: metrics of such a split are too good.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {

// Adds a notice if samples of a split are in `train`, or in another split that `of` names, too. key: a well-mixed
// 64-bit hash of a sample; samples with equal keys count as equal. Takes about 60 bytes for each sample of the split.
template <class Sample, class Key>
void say_known_samples(std::vector<Sample> const& train, std::vector<Sample> const& split, std::string_view kind,
                       std::string_view name, Key key, std::vector<std::string>& notices,
                       std::string_view of = "training") {
  // Most training samples are not in the split: 16 bits for each of its samples tell so.
  std::uint64_t const mask = std::bit_ceil(16 * split.size() + 1) - 1;
  std::vector<bool> may_be(mask + 1);
  std::unordered_map<std::uint64_t, std::uint64_t> counts;  // of samples of the split that training has not yet shown
  for (Sample const& sample : split) {
    std::uint64_t const hash = key(sample);
    may_be[hash & mask] = true;
    ++counts[hash];
  }
  std::uint64_t known = 0;
  for (Sample const& sample : train) {
    std::uint64_t const hash = key(sample);
    if (!may_be[hash & mask]) continue;
    if (auto const found = counts.find(hash); found != counts.end()) {
      known += found->second;
      counts.erase(found);
    }
  }
  if (known == 0) return;
  notices.push_back(fmt::format("{} of the {} split, of {}, are {} samples too: its metrics are too good",
                                with_count(known, kind), name, split.size(), of));
}

}  // namespace gpups::trainer
