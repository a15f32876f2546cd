// SPDX-License-Identifier: Apache-2.0
// How many latencies of loads a thread exposes in kernels whose threads work on rows of very different lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/sum/sum_gradients.hpp"
#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::emulator::exposed_loads_test {
namespace {

// Returns the most latencies that a thread exposes in a kernel of the sum of a row with this many entries, each of
// which has a source and a coefficient.
std::uint32_t exposed_by_sum(std::size_t entries, std::size_t dim) {
  Options const before = options();
  options().counts = true;
  Stream stream(Device::cuda(0), 1);
  std::vector<std::uint32_t> order(entries);
  std::iota(order.begin(), order.end(), 0U);
  auto const offsets = to_device(stream, std::vector<std::uint32_t>{0, static_cast<std::uint32_t>(entries)});
  auto const there = to_device(stream, order);
  auto const coefficients = to_device(stream, std::vector<float>(entries, .5F));
  auto const sources = gpups::test::matrix(stream, std::vector<float>(entries * dim, 1), entries, dim);
  Matrix<std::int64_t> sums(stream.device(), 1, dim);
  auto const bad_row = to_device(stream, std::vector<std::uint32_t>{std::numeric_limits<std::uint32_t>::max()});
  runtime_counts() = {};
  kernels::sum_gradients(stream, kernels::SumGradients{.offsets = offsets,
                                                       .order = there,
                                                       .sources = there,
                                                       .source_rows = sources,
                                                       .coefficients = coefficients,
                                                       .grid_log2 = -30,
                                                       .sums = sums,
                                                       .bad_row = bad_row});
  stream.wait();
  std::uint32_t most = 0;
  for (auto const& [name, counts] : runtime_counts().kernels) most = std::max(most, counts.exposed_loads);
  auto const units = to_host(stream, View<std::int64_t const>(sums.view().row(0), dim, stream.device()));
  EXPECT_EQ(units, std::vector<std::int64_t>(dim, static_cast<std::int64_t>(entries) << 29));
  options() = before;
  return most;
}

// A latency takes about .6 us on a GPU, and hot rows have thousands of entries.
TEST(ExposedLoads, SumOfALongRowHasFew) {
  for (std::size_t const dim : {16U, 64U, 128U}) {
    for (std::size_t const entries : {1U, 32U, 256U, 4096U}) {
      EXPECT_LE(exposed_by_sum(entries, dim), 16U) << entries << " entries of dim " << dim;
    }
  }
}

}  // namespace
}  // namespace gpups::emulator::exposed_loads_test
