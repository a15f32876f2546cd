// SPDX-License-Identifier: Apache-2.0
// Gradients of a batch of popular keys, summed exactly and applied by row-wise Adagrad to a table larger than the
// caches, beside a copy of as many bytes as must move.
#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/against/copy_side.hpp"
#include "bench/against/races.hpp"
#include "bench/against/sparse_gradients.hpp"
#include "kernels/life.hpp"
#include "tests/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kEntries = std::size_t{1} << 20, kRows = std::size_t{4} << 20, kDim = 64;
constexpr double kExponent = 1.05;

// Draws of a Zipf distribution over kRows, as numbers of rows that lie anywhere in the table.
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

// Each source belongs to `per_source` entries, one after the other.
Race push_of(Stream& stream, std::size_t per_source) {
  test::Random random(1);
  std::vector<std::uint32_t> sources(per_source > 1 ? kEntries : 0);
  for (std::uint32_t e = 0; e < sources.size(); ++e) sources[e] = e / static_cast<std::uint32_t>(per_source);
  auto const g = std::make_shared<SparseGradients>(
      sparse_gradients(stream, zipf_rows(random), sources, kRows, kDim, {.kind = Optimizer::Kind::kRowwiseAdagrad}));
  // Each entry's source is read once; each row's value, state and life are read and written.
  double const row_bytes = kDim * sizeof(float) + sizeof(float) + kernels::kLifeWords * sizeof(std::uint32_t);
  double const bytes =
      static_cast<double>(g->entries()) * kDim * sizeof(float) + static_cast<double>(g->rows()) * 2 * row_bytes;
  return {
      "bytes", {"push", bytes, [=, &stream] { kernels::sum_and_update(stream, g->arguments()); }}, copy_side(stream)};
}

}  // namespace

Race push_race(Stream& stream) { return push_of(stream, 1); }

// Bags of 16 keys that share their gradient.
Race push_bags_race(Stream& stream) { return push_of(stream, 16); }

}  // namespace gpups::bench
