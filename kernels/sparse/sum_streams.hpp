// SPDX-License-Identifier: Apache-2.0
// Sums sparse streams of one range, to a stream, to a list or to a dense vector. Works block by block in arrays that
// stay in a core's caches. The terms of an element are added in the order of the streams, so the same streams give the
// same bits everywhere. T is float, or std::int64_t for whole units of a grid.
#pragma once

#include <optional>
#include <span>

#include "gpups/array.hpp"
#include "kernels/sparse/stream_view.hpp"

namespace gpups::kernels {

// All REQUIRE: streams without error, of the same range; if T is std::int64_t, streams of units have its grid.
template <class T>
struct SumToStream {
  std::span<StreamView const> streams;  // at least one
  ValueForm form;                       // of the result
  // (size), or empty. If `form` is not exact, the errors are added to the residual at the positions of the values.
  View<T> residual = {};
};
// To a list of the sums that are not 0, with their indices in the vector, ascending.
template <class T>
struct SumToEntries {
  std::span<StreamView const> streams;  // at least one
};
// into = the sum; with `add`, into += each stream in order.
template <class T>
struct SumToDense {
  std::span<StreamView const> streams;
  View<T> into;  // (size), the elements of the range
  bool add = false;
};

// The index of the first stream with an invalid block, if there is one; then there is no other result.
using BadStream = std::optional<std::size_t>;

// A sum as a stream.
struct EncodedSum {
  BadStream bad;
  Array<std::uint8_t> bytes;
};
// A sum as a list of elements.
template <class T>
struct SumEntries {
  BadStream bad;
  Array<std::uint32_t> indices;
  Array<T> values;
};

// Everything is on the host; the threads of `stream` share the work.
template <class T>
EncodedSum sum(Stream& stream, SumToStream<T> const& arguments);
template <class T>
SumEntries<T> sum(Stream& stream, SumToEntries<T> const& arguments);
template <class T>
BadStream sum(Stream& stream, SumToDense<T> const& arguments);

}  // namespace gpups::kernels
