// SPDX-License-Identifier: Apache-2.0
// Compares a push of a batch of popular keys, summed exactly and applied by row-wise Adagrad to a table larger than the
// caches, with a copy of as many bytes as it must move.
#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/against/copy_side.hpp"
#include "bench/against/races.hpp"
#include "bench/against/sparse_gradients.hpp"
#include "kernels/base/nontemporal.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kEntries = std::size_t{1} << 20, kRows = std::size_t{4} << 20, kDim = 64;
constexpr double kExponent = 1.05;

// Draws from a Zipf distribution over kRows; the popular rows are spread over the table.
std::vector<std::uint32_t> zipf_rows(test::Random& random) {
  std::vector<double> up_to(kRows);
  double total = 0;
  for (std::size_t i = 0; i < kRows; ++i) up_to[i] = total += std::pow(static_cast<double>(i + 1), -kExponent);
  auto const place = test::distinct_ids(random, kRows, kRows);
  std::vector<std::uint32_t> rows(kEntries);
  for (auto& row : rows) {
    auto const rank = std::upper_bound(up_to.begin(), up_to.end(), test::uniform(random) * total) - up_to.begin();
    row = place[std::min<std::size_t>(static_cast<std::size_t>(rank), kRows - 1)];
  }
  return rows;
}

// Each source belongs to `per_source` consecutive entries.
std::shared_ptr<SparseGradients> gradients(Stream& stream, std::size_t per_source) {
  test::Random random(1);
  std::vector<std::uint32_t> sources(per_source > 1 ? kEntries : 0);
  for (std::uint32_t e = 0; e < sources.size(); ++e) sources[e] = e / static_cast<std::uint32_t>(per_source);
  return std::make_shared<SparseGradients>(
      sparse_gradients(stream, zipf_rows(random), sources, kRows, kDim, {.kind = Optimizer::Kind::kRowwiseAdagrad}));
}

// Each source is read once for each of its entries; the values, state and lifecycle of each row are read and written.
double bytes_moved(SparseGradients const& g) {
  double const row_bytes = kDim * sizeof(float) + sizeof(float) + kernels::kLifecycleWords * sizeof(std::uint32_t);
  return static_cast<double>(g.entries()) * kDim * sizeof(float) + static_cast<double>(g.rows()) * 2 * row_bytes;
}

Race push_of(Stream& stream, std::size_t per_source) {
  auto const g = gradients(stream, per_source);
  return {"bytes",
          {"push", bytes_moved(*g), [=, &stream] { kernels::sum_and_update(stream, g->arguments()); }},
          copy_side(stream)};
}

}  // namespace

Race push_race(Stream& stream) { return push_of(stream, 1); }

// A minimal loop that sums the sources of each row and adds the sum to the row: the memory's share of the time of a
// push on this machine.
Race push_bare_race(Stream& stream) {
  constexpr std::size_t kBlock = 2048, kRowsAhead = 16, kFar = 64, kNear = 8;
  auto const g = gradients(stream, 1);
  auto const run = [=, &stream] {
    std::size_t const blocks = (g->rows() + kBlock - 1) / kBlock;
    kernels::host_exec(stream).arena->blocks(blocks, [&](std::size_t block) {
      std::size_t const end = std::min(g->rows(), (block + 1) * kBlock), last = g->entries() - 1;
      std::uint32_t const *const offsets = g->offsets.data(), *const order = g->order.data(),
                                 *const ids = g->ids.data();
      auto const values = g->values.ref(), state = g->state.ref();
      auto const lifecycle = g->lifecycle.ref();
      MatrixView<float const> const sources = g->source_rows;
      for (std::size_t r = block * kBlock; r < end; ++r) {
        std::uint32_t const later = ids[std::min(r + kRowsAhead, end - 1)], id = ids[r];
        kernels::prefetch_row<kernels::PrefetchTarget::kToL2>(values.row(later), kDim * sizeof(float));
        kernels::prefetch_row<kernels::PrefetchTarget::kToL2>(state.row(later), 1);
        kernels::prefetch_row<kernels::PrefetchTarget::kToL2>(lifecycle.row(later), 1);
        float sum[kDim] = {};
        for (std::size_t e = offsets[r]; e < offsets[r + 1]; ++e) {
          kernels::prefetch_row<kernels::PrefetchTarget::kToL2>(sources.row(order[std::min(e + kFar, last)]),
                                                                kDim * sizeof(float));
          kernels::prefetch_row<kernels::PrefetchTarget::kToL1>(sources.row(order[std::min(e + kNear, last)]),
                                                                kDim * sizeof(float));
          float const* const source = sources.row(order[e]);
          for (std::size_t j = 0; j < kDim; ++j) sum[j] += source[j];
        }
        float* const value = values.row(id);
        for (std::size_t j = 0; j < kDim; ++j) value[j] += sum[j];
        *state.row(id) += sum[0] * sum[0];
        ++lifecycle.row(id)[0];
      }
    });
  };
  return {"bytes", {"a bare loop", bytes_moved(*g), run}, copy_side(stream)};
}

// Bags of 16 keys that share one gradient.
Race push_bags_race(Stream& stream) { return push_of(stream, 16); }

}  // namespace gpups::bench
