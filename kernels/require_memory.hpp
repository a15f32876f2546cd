// SPDX-License-Identifier: Apache-2.0
// Refuses arrays that callers of the library give without memory. Views do not check themselves: kernels cut them all
// the time, also on devices, where nothing can be thrown.
#pragma once

#include <cstddef>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "kernels/check.hpp"

namespace gpups::kernels {

template <class T>
std::size_t count_given(View<T> const& given) {
  return given.size();
}
template <class T>
std::size_t count_given(MatrixView<T> const& given) {
  return given.columns() == 0 ? 0 : given.rows();
}

// Throws Error where there are elements and no memory that they are in. call, what: "push", "sources".
template <class V>
void require_memory(V const& given, char const* call, char const* what) {
  GPUPS_REQUIRE(given.data() != nullptr || count_given(given) == 0,
                "{} was given a null address for {} {} (nothing can be read or written there): give the address of "
                "their memory",
                call, count_given(given), what);
}

// The same, and where data is elsewhere than the stream that reads or writes it.
template <class V>
void require_here(Stream const& stream, V const& given, char const* call, char const* what) {
  require_memory(given, call, what);
  GPUPS_REQUIRE(given.data() == nullptr || given.device() == stream.device(),
                "{} was given {} on {} and the stream is on {} (it cannot reach them): copy them first", call, what,
                to_string(given.device()), to_string(stream.device()));
}

}  // namespace gpups::kernels
