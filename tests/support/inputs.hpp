// SPDX-License-Identifier: Apache-2.0
// Synthetic inputs, and copies between host vectors and devices.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::test {

using Random = std::mt19937_64;

inline std::uint64_t below(Random& random, std::uint64_t limit) { return random() % limit; }
inline double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// Returns a different key for each number. The keys of numbers 0 and 1 are 0 and ~0.
inline Key scrambled(std::uint64_t number) {
  return Key{number == 1 ? ~std::uint64_t{0} : number * 0x9E3779B97F4A7C15U};
}

// Draws n of about `range` keys. The probability of key number k is proportional to 1 / (k + 1).
inline std::vector<Key> zipf_keys(Random& random, std::size_t n, std::size_t range) {
  std::vector<Key> keys(n);
  double const top = std::log(static_cast<double>(range) + 1);
  for (auto& key : keys) key = scrambled(static_cast<std::uint64_t>(std::exp(top * uniform(random))) - 1);
  return keys;
}

inline std::vector<Key> distinct_keys(std::size_t n, std::uint64_t first = 0) {
  std::vector<Key> keys(n);
  for (std::size_t i = 0; i < n; ++i) keys[i] = scrambled(first + i);
  return keys;
}

// Returns n distinct random numbers below `range`. REQUIRES: n <= range.
inline std::vector<std::uint32_t> distinct_ids(Random& random, std::size_t n, std::size_t range) {
  std::vector<std::uint32_t> ids(range);
  for (std::size_t i = 0; i < range; ++i) ids[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < n; ++i) std::swap(ids[i], ids[i + below(random, range - i)]);
  ids.resize(n);
  return ids;
}

// Returns rows * row_stride(dim) random floats in [-1, 1), with zeros in the padding.
inline std::vector<float> floats(Random& random, std::size_t rows, std::size_t dim) {
  std::size_t const stride = row_stride(dim);
  std::vector<float> values(rows * stride, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % stride < dim) values[i] = static_cast<float>(uniform(random) * 2 - 1);
  }
  return values;
}

// Copies host values into a matrix on the stream's device; `from` has padded rows.
template <class T>
Matrix<T> matrix(Stream& stream, std::vector<T> const& from, std::size_t rows, std::size_t dim) {
  Matrix<T> to(stream.device(), rows, dim);
  copy<T>(stream, to.view().flat(), View<T const>(from));
  stream.wait();
  return to;
}

// Calls act(first row, elements) for each chunk of rows 0 .. count - 1.
template <class T, class Act>
void each_chunk(Stream& stream, kernels::Rows<T> rows, std::size_t count, Act act) {
  for (std::size_t first = 0; first < count && rows.stride > 0; first += rows.chunk_rows()) {
    T* chunk = nullptr;
    memory::copy(stream, &chunk, Device::host(), rows.chunks + first / rows.chunk_rows(), stream.device(),
                 sizeof chunk);
    stream.wait();
    act(first, View<T>(chunk, std::min(rows.chunk_rows(), count - first) * rows.stride, stream.device()));
  }
}

// Returns row storage with the values of `from`, row after row.
template <class T>
kernels::RowStorage<T> rows(Stream& stream, std::vector<T> const& from, std::size_t count, std::size_t stride) {
  kernels::RowStorage<T> to(stream.device(), stride, kernels::NewRows::kUndefined, kernels::Growth::kByMoving);
  to.reserve(stream, count);
  each_chunk(stream, to.ref(), count, [&](std::size_t first, View<T> chunk) {
    copy<T>(stream, chunk, View<T const>(from.data() + first * stride, chunk.size()));
  });
  stream.wait();
  return to;
}

template <class T>
std::vector<std::remove_const_t<T>> to_host(Stream& stream, kernels::Rows<T> rows, std::size_t count) {
  using Element = std::remove_const_t<T>;
  std::vector<Element> to(count * rows.stride);
  each_chunk(stream, rows, count, [&](std::size_t first, View<T> chunk) {
    copy<Element>(stream, View<Element>(to.data() + first * rows.stride, chunk.size()), chunk);
  });
  stream.wait();
  return to;
}

}  // namespace gpups::test
