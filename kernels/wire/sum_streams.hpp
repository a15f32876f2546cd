// SPDX-License-Identifier: Apache-2.0
// The sum of sparse streams of one range, as a stream, as a list or in a dense vector. It is made block by block, in an
// array that stays in a core's caches; each element's terms are added in the order of the streams, so that the bits are
// the same wherever the same streams are summed. T is float, or std::int64_t for whole units of a grid.
#pragma once

#include <optional>
#include <span>

#include "gpups/array.hpp"
#include "kernels/wire/stream_view.hpp"

namespace gpups::kernels {

// REQUIRES of all: streams without a fault, of one range; a stream of units and sums of std::int64_t have one grid.
template <class T>
struct SumToStream {
  std::span<StreamView const> streams;  // at least one
  ValueForm form;                       // of the result
  View<T> residual = {};                // (size), or empty: takes up, at their places, what the sums lose by their form
};
// The sums, their indices in the vector ascending. Sums of 0 are left out.
template <class T>
struct SumToEntries {
  std::span<StreamView const> streams;  // at least one
};
// into = the sum, or with `add`, into += each stream in turn.
template <class T>
struct SumToDense {
  std::span<StreamView const> streams;
  View<T> into;  // (size), of the range
  bool add = false;
};

// The first of the streams in which a block is not what a sender writes, if any; there is no other result then.
using BadStream = std::optional<std::size_t>;

struct EncodedSum {
  BadStream bad;
  Array<std::uint8_t> bytes;
};
template <class T>
struct SumEntries {
  BadStream bad;
  Array<std::uint32_t> indices;
  Array<T> values;
};

// All is on the host; the stream's threads share the work.
template <class T>
EncodedSum sum(Stream& stream, SumToStream<T> const& arguments);
template <class T>
SumEntries<T> sum(Stream& stream, SumToEntries<T> const& arguments);
template <class T>
BadStream sum(Stream& stream, SumToDense<T> const& arguments);

}  // namespace gpups::kernels
