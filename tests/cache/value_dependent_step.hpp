// SPDX-License-Identifier: Apache-2.0
// A step whose gradients depend on the values that it reads, so that any wrong bit spreads.
#pragma once

#include <span>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test {

// Runs such a step on the host, with a batch of one part for each of tables 0, 1, ...
inline void run_value_dependent_step(Store& store, Stream& stream, PreparedBatch const& batch) {
  store.wait_ready(batch);
  std::vector<Matrix<float>> rows, sources;
  std::vector<MatrixView<float>> views;
  for (std::size_t t = 0; t < batch.parts(); ++t) {
    rows.emplace_back(Device::host(), batch.rows(t), store.table(TableId{static_cast<std::uint32_t>(t)}).dim);
    views.push_back(rows.back());
  }
  store.pull(stream, batch, views);
  std::vector<TableGradients> gradients;
  for (std::size_t t = 0; t < batch.parts(); ++t) {
    sources.emplace_back(Device::host(), batch.entries(t), rows[t].columns());
    for (std::size_t e = 0; e < batch.entries(t); ++e) {
      for (std::size_t j = 0; j < rows[t].columns(); ++j) {
        sources[t].row(e)[j] = rows[t].row(batch.positions(t)[e])[j] * 0.3F + 0.01F;
      }
    }
    gradients.push_back({.sources = sources[t]});
  }
  store.push(stream, batch, gradients);
  store.advance_clock();
}

// The same for a batch that is prepared in the step. Together its parts have `samples` samples.
inline void run_value_dependent_step(Store& store, Stream& stream, std::span<TableBatch const> parts,
                                     std::size_t samples) {
  run_value_dependent_step(store, stream, store.prepare(stream, store.clock(), parts, samples));
}

}  // namespace gpups::test
