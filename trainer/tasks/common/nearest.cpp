// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/nearest.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"

namespace gpups::trainer {

Matrix<float> read_rows(Stream& stream, Store& store, TableId table, std::vector<Key> const& keys) {
  Array<Key> const on_device = to_device(stream, keys);
  Matrix<float> rows(stream.device(), keys.size(), store.table(table).dim);
  memory::fill_bytes(stream, rows.view().data(), 0, rows.view().flat().bytes());
  for (std::size_t first = 0; first < keys.size(); first += kKeysAtOnce) {
    std::size_t const count = std::min(kKeysAtOnce, keys.size() - first);
    store.lookup(stream, table, View<Key const>(on_device).slice(first, count), rows.view().slice(first, count), {});
  }
  return rows;
}

std::vector<bool> wait_have_rows(Stream& stream, Store& store, TableId table, std::vector<Key> const& keys) {
  Array<Key> const on_device = to_device(stream, keys);
  std::size_t const at_once = std::min(kKeysAtOnce, keys.size());
  Matrix<float> rows(stream.device(), at_once, store.table(table).dim);
  Array<std::uint8_t> found(stream.device(), at_once);
  std::vector<bool> have;
  for (std::size_t first = 0; first < keys.size(); first += kKeysAtOnce) {
    std::size_t const count = std::min(kKeysAtOnce, keys.size() - first);
    store.lookup(stream, table, View<Key const>(on_device).slice(first, count), rows.view().slice(0, count),
                 found.view().slice(0, count));
    std::vector<std::uint8_t> const some = to_host(stream, View<std::uint8_t const>(found.view().slice(0, count)));
    have.insert(have.end(), some.begin(), some.end());
  }
  return have;
}

namespace {

double dot(float const* a, float const* b, std::size_t n) {
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += static_cast<double>(a[j]) * b[j];
  return sum;
}

}  // namespace

std::vector<Neighbour> nearest(MatrixView<float const> rows, std::uint32_t entity, std::size_t count) {
  GPUPS_ASSERT(rows.device().is_host() && entity < rows.rows());
  float const* const query = rows.row(entity);
  double const query_norm = std::sqrt(dot(query, query, rows.columns()));
  std::vector<Neighbour> all;
  for (std::uint32_t e = 0; e < rows.rows(); ++e) {
    if (e == entity) continue;
    float const* const row = rows.row(e);
    double const norms = query_norm * std::sqrt(dot(row, row, rows.columns()));
    all.push_back({e, norms > 0 ? dot(query, row, rows.columns()) / norms : 0});
  }
  auto const last = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
  std::partial_sort(all.begin(), last, all.end(), [](Neighbour const& a, Neighbour const& b) {
    return a.cosine != b.cosine ? a.cosine > b.cosine : a.entity < b.entity;
  });
  all.erase(last, all.end());
  return all;
}

}  // namespace gpups::trainer
