// SPDX-License-Identifier: Apache-2.0
#include "bench/against/sparse_gradients.hpp"

#include <algorithm>

#include "kernels/index/unique_keys.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {

namespace {

template <class T>
kernels::RowStorage<T> column(Stream& stream, std::size_t rows, std::size_t stride) {
  kernels::RowStorage<T> storage(stream.device(), stride, kernels::NewRows::kZero);
  storage.reserve(stream, rows);
  return storage;
}

// The entries of a prepared batch, sorted by row.
struct EntriesByKey {
  std::vector<std::uint32_t> offsets, order;
};
EntriesByKey entries_by_key(Stream& stream, std::vector<std::uint32_t> const& rows) {
  std::size_t const n = rows.size();
  std::vector<Key> keys;
  for (std::uint32_t const row : rows) keys.push_back(test::scrambled(row));
  auto const in = to_device(stream, keys);
  Array<Key> const unique(stream.device(), n);
  Array<std::uint32_t> const positions(stream.device(), n), offsets(stream.device(), n + 1), order(stream.device(), n);
  std::vector<std::uint32_t> home_offsets(2);
  kernels::KeyPart const part{in, unique, positions, View<std::uint32_t>(home_offsets), offsets, order};
  kernels::wait_unique_keys(stream, {.parts = {&part, 1}, .homes = 1});
  return {to_host(stream, offsets.view().slice(0, home_offsets[1] + 1)), to_host(stream, order.view())};
}

}  // namespace

SparseGradients sparse_gradients(Stream& stream, std::vector<std::uint32_t> const& rows,
                                 std::vector<std::uint32_t> const& sources, std::size_t table_rows, std::size_t dim,
                                 Optimizer const& optimizer) {
  test::Random random(7);
  std::size_t const entries = rows.size();
  std::size_t const source_rows = sources.empty() ? entries : 1 + *std::max_element(sources.begin(), sources.end());
  auto const [offsets, order] = entries_by_key(stream, rows);
  std::vector<std::uint32_t> ids;
  for (std::size_t r = 0; r + 1 < offsets.size(); ++r) ids.push_back(rows[order[offsets[r]]]);
  std::vector<float> coefficients(entries);
  for (float& c : coefficients) c = static_cast<float>(test::uniform(random) - 0.5);
  SparseGradients g{.dim = dim,
                    .offsets = to_device(stream, offsets),
                    .order = to_device(stream, order),
                    .sources = to_device(stream, sources),
                    .ids = to_device(stream, ids),
                    .bad_row = to_device(stream, std::vector{kernels::kNoRow}),
                    .coefficients = to_device(stream, coefficients),
                    .source_rows = Matrix<float>(stream.device(), source_rows, dim),
                    .optimizer = optimizer,
                    .values = column<float>(stream, table_rows, row_stride(dim)),
                    .state = column<float>(stream, table_rows, kernels::state_columns(optimizer, dim)),
                    .lifecycle = column<std::uint32_t>(stream, table_rows, kernels::kLifecycleWords)};
  auto const fill = [&](float* row) {
    std::fill_n(row, row_stride(dim), 0.0F);
    for (std::size_t j = 0; j < dim; ++j) row[j] = static_cast<float>(test::uniform(random) - 0.5) / 8;
  };
  for (std::size_t i = 0; i < source_rows; ++i) fill(g.source_rows.view().row(i));
  for (std::uint32_t const id : ids) fill(g.values.ref().row(id));
  g.contribution_max = kernels::contribution_max(kernels::wait_max_abs(stream, g.coefficients_as_row()),
                                                 kernels::wait_max_abs(stream, g.source_rows), kGridLog2);
  return g;
}

kernels::SumAndUpdate SparseGradients::arguments() const {
  MatrixView<std::int64_t> const no_sums{nullptr, rows(), dim, row_stride(dim), Device::host()};
  return {.gradients = {.offsets = offsets,
                        .order = order,
                        .sources = sources,
                        .source_rows = source_rows,
                        .coefficients = coefficients,
                        .grid_log2 = kGridLog2,
                        .sums = no_sums,
                        .bad_row = bad_row,
                        .contribution_max = contribution_max},
          .update = {.ids = ids,
                     .sums = no_sums,
                     .values = values.ref(),
                     .state = state.ref(),
                     .lifecycle = lifecycle.ref(),
                     .dim = dim,
                     .grid_log2 = kGridLog2,
                     .scale = 1.0 / static_cast<double>(entries()),
                     .optimizer = optimizer,
                     .rate = 0.1F,
                     .step = 1,
                     .admission_count = 1,
                     .bad_row = bad_row}};
}

}  // namespace gpups::bench
