// SPDX-License-Identifier: Apache-2.0
// Encodes a vector, or a part of it, as a sparse stream. T is float, or std::int64_t for whole units of a grid.
#pragma once

#include "gpups/array.hpp"
#include "kernels/sparse/stream_view.hpp"

namespace gpups::kernels {

// Encodes the elements of a list that are in the range [first, first + size). A list can thus be split into ranges, for
// instance one for each rank, without a copy.
template <class T>
struct EncodeEntries {
  View<std::uint32_t const> indices;  // (n) in the vector, ascending
  View<T const> values;               // (n)
  std::uint64_t first, size;
  ValueForm form;
  // (size), or empty. If `form` is not exact, the errors are added to the residual at the positions of the values.
  View<T> residual = {};
};

// Encodes all elements of the range that are not 0. Reads them twice.
template <class T>
struct EncodeDense {
  View<T const> values;  // (size), the elements of the range
  std::uint64_t first;
  ValueForm form;
  View<T> residual = {};  // (size), or empty
};

// Return the bytes of the stream. All arrays are on the host; the threads of `stream` share the work. Throw Error if
// indices are not strictly ascending.
template <class T>
Array<std::uint8_t> encode(Stream& stream, EncodeEntries<T> const& arguments);
template <class T>
Array<std::uint8_t> encode(Stream& stream, EncodeDense<T> const& arguments);

// A list that can be read as a stream, without a copy of its values, for sums in this process.
struct ListedStream {
  Array<std::uint8_t> positions;
  StreamView view;  // refers to `positions` and to the values of the list
};
struct ViewEntries {
  View<std::uint32_t const> indices;  // (n) in the vector, ascending
  View<float const> values;           // (n)
  std::uint64_t first, size;
};
// Makes a stream of a list. Throws Error as encode() does.
ListedStream view_in_place(Stream& stream, ViewEntries const& arguments);
// Makes a stream of all elements of an array on the host, zeros included. The array is the part of a vector that begins
// at `first`, and must outlive the view.
StreamView view_in_place(View<float const> array, std::uint64_t first);

}  // namespace gpups::kernels
