// SPDX-License-Identifier: Apache-2.0
// The bigraph of samples and rows: which rows of the tables each training sample reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpups::trainer {

// Rows are numbered from 0 over all tables. Takes 4 bytes per entry and 8 bytes per sample.
struct Bigraph {
  std::uint32_t rows = 0;
  std::vector<std::uint64_t> offsets{0};  // (samples + 1): sample i has entries offsets[i] .. offsets[i + 1] - 1
  std::vector<std::uint32_t> entries;     // the row of each entry

  std::size_t samples() const { return offsets.size() - 1; }
  std::uint64_t bytes() const {
    return offsets.size() * sizeof(std::uint64_t) + entries.size() * sizeof(std::uint32_t);
  }
  std::span<std::uint32_t const> rows_of(std::size_t sample) const {
    return {entries.data() + offsets[sample], entries.data() + offsets[sample + 1]};
  }
  void add(std::span<std::uint32_t const> rows_of_sample) {
    entries.insert(entries.end(), rows_of_sample.begin(), rows_of_sample.end());
    offsets.push_back(entries.size());
  }
};

// How much the place of each row matters.
struct RowWeights {
  // The expected number of reads of the row in a batch, divided by the expected number of its entries there. It is near
  // 1 for rare rows and near 0 for rows that occur many times in each batch, because a rank reads a row once a step.
  std::vector<float> cost;
  // The row's share of the samples that read it, in proportion to `cost`. The sum over all rows is the number of
  // samples.
  std::vector<float> load;
};
// batch_samples: number of samples that a rank reads together.
RowWeights row_weights(Bigraph const& graph, double batch_samples);

}  // namespace gpups::trainer
