// SPDX-License-Identifier: Apache-2.0
// Rejects arrays of callers that have elements but a null address, or that are on another device than the stream. Views
// do not check this: kernels slice them all the time, also on devices, where no exception can be thrown.
#pragma once

#include <cstddef>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "kernels/base/check.hpp"

namespace gpups::kernels {

// Returns the number of elements of a view, or of rows of a matrix.
template <class T>
std::size_t count_given(View<T> const& given) {
  return given.size();
}
template <class T>
std::size_t count_given(MatrixView<T> const& given) {
  return given.columns() == 0 ? 0 : given.rows();
}

// Returns whether no two rows overlap.
template <class T>
bool has_separate_rows(View<T> const&) {
  return true;
}
template <class T>
bool has_separate_rows(MatrixView<T> const& given) {
  return given.rows() < 2 || given.stride() >= given.columns();
}

// Throws Error if an array has elements but a null address, or if rows of a matrix overlap. call, what: the names of
// call and array for the message, such as "push" and "sources".
template <class V>
void require_memory(V const& given, char const* call, char const* what) {
  GPUPS_REQUIRE(given.data() != nullptr || count_given(given) == 0,
                "{} was given a null address for {} {} (nothing can be read or written there): give the address of "
                "their memory",
                call, count_given(given), what);
  GPUPS_REQUIRE(has_separate_rows(given),
                "{} was given a matrix of {} whose stride is below its number of columns (its rows overlap): give the "
                "stride of its memory, in elements",
                call, what);
}

// The same. Also throws Error if the array is on another device than the stream that reads or writes it.
template <class V>
void require_here(Stream const& stream, V const& given, char const* call, char const* what) {
  require_memory(given, call, what);
  GPUPS_REQUIRE(given.data() == nullptr || given.device() == stream.device(),
                "{} was given {} on {} and a stream on {} (the stream cannot reach them): copy them first", call, what,
                to_string(given.device()), to_string(stream.device()));
}

}  // namespace gpups::kernels
