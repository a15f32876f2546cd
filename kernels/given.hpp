// SPDX-License-Identifier: Apache-2.0
// Checks an array that a caller gives, once for each, in public calls. Not where a view is made: kernels cut views all
// the time, on devices too, where nothing can be thrown, and what has no columns has no memory.
#pragma once

#include <cstddef>

#include "gpups/array.hpp"
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

}  // namespace gpups::kernels
