// SPDX-License-Identifier: Apache-2.0
// A vector, or a part of it, as a sparse stream. T is float, or std::int64_t for whole units of a grid.
#pragma once

#include "gpups/array.hpp"
#include "kernels/wire/stream_view.hpp"

namespace gpups::kernels {

// From a list of elements: those of the range [first, first + size). With a range for each rank, a list is split at no
// cost.
template <class T>
struct EncodeEntries {
  View<std::uint32_t const> indices;  // (n) in the vector, ascending
  View<T const> values;               // (n)
  std::uint64_t first, size;
  ValueForm form;
  View<T> residual = {};  // (size), or empty: takes up, at their places, what the values lose by their form
};

// From all elements of the range: those that are not 0. They are read twice.
template <class T>
struct EncodeDense {
  View<T const> values;  // (size), of the range
  std::uint64_t first;
  ValueForm form;
  View<T> residual = {};  // (size), or empty
};

// All is on the host; the stream's threads share the work. Throw Error where indices are not ascending, each once.
template <class T>
Array<std::uint8_t> encode(Stream& stream, EncodeEntries<T> const& arguments);
template <class T>
Array<std::uint8_t> encode(Stream& stream, EncodeDense<T> const& arguments);

// A list as a stream whose values stay where they are, for sums in this process.
struct ListedStream {
  Array<std::uint8_t> positions;
  StreamView view;  // refers to them, and to the list's values
};
struct ViewEntries {
  View<std::uint32_t const> indices;  // (n) in the vector, ascending
  View<float const> values;           // (n)
  std::uint64_t first, size;
};
// Throws Error as encode() does.
ListedStream view_in_place(Stream& stream, ViewEntries const& arguments);
// All elements of an array of the host, zeros included: of a vector those from `first` on. The array must outlive the
// view.
StreamView view_in_place(View<float const> array, std::uint64_t first);

}  // namespace gpups::kernels
