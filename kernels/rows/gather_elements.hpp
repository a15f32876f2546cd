// SPDX-License-Identifier: Apache-2.0
// Copies elements by position: of lists, many in one launch, and of row storages. Moves the positions, and twice the
// bytes of the elements.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// to[i] = from[positions[i]]. T: Key or std::uint32_t.
template <class T>
struct GatherElements {
  View<T const> from;
  View<std::uint32_t const> positions;  // (n)
  View<T> to;                           // (n)
};
void gather_elements(Stream& stream, std::span<GatherElements<Key> const> lists);
void gather_elements(Stream& stream, std::span<GatherElements<std::uint32_t> const> lists);
template <class T>
void gather_elements(Stream& stream, GatherElements<T> const& list) {
  gather_elements(stream, std::span<GatherElements<T> const>(&list, 1));
}

// to[positions[i]] = from[i].
struct ScatterElements {
  View<std::uint32_t const> from;       // (n)
  View<std::uint32_t const> positions;  // (n), distinct
  View<std::uint32_t> to;
};
void scatter_elements(Stream& stream, std::span<ScatterElements const> lists);
inline void scatter_elements(Stream& stream, ScatterElements const& list) { scatter_elements(stream, {&list, 1}); }

// to[i] = from[i].
struct CopyWords {
  View<std::uint32_t const> from;  // (n)
  View<std::uint32_t> to;          // (n)
};
void copy_words(Stream& stream, std::span<CopyWords const> lists);

// Copies the elements of rows from a row storage to an array. T: float, std::uint32_t or std::uint64_t.
template <class T>
struct GatherStored {
  Rows<T const> rows;
  View<std::uint32_t const> ids;  // (n), numbers of existing rows; kNoRow: the elements of `out` do not change
  View<T> out;                    // (n * rows.stride)
};
void gather_stored(Stream& stream, std::span<GatherStored<float> const> lists);
void gather_stored(Stream& stream, std::span<GatherStored<std::uint32_t> const> lists);
void gather_stored(Stream& stream, std::span<GatherStored<std::uint64_t> const> lists);
template <class T>
void gather_stored(Stream& stream, GatherStored<T> const& list) {
  gather_stored(stream, std::span<GatherStored<T> const>(&list, 1));
}

// Copies the elements of rows from an array to a row storage. T: float or std::uint32_t.
template <class T>
struct ScatterStored {
  View<T const> from;             // (n * rows.stride)
  View<std::uint32_t const> ids;  // (n), distinct, or kNoRow: nothing is written
  Rows<T> rows;
};
void scatter_stored(Stream& stream, std::span<ScatterStored<float> const> lists);
void scatter_stored(Stream& stream, std::span<ScatterStored<std::uint32_t> const> lists);
template <class T>
void scatter_stored(Stream& stream, ScatterStored<T> const& list) {
  scatter_stored(stream, std::span<ScatterStored<T> const>(&list, 1));
}

}  // namespace gpups::kernels
