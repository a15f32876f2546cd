// SPDX-License-Identifier: Apache-2.0
// Selects code for a format that is known only at run time.
#pragma once

#include "kernels/base/assert.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::kernels {

// Calls call.as<F>(ex) for this format.
template <class Ex, class Call>
void with_format(Ex ex, Format format, Call const& call) {
  switch (format) {
    case Format::kFloat:
      return call.template as<Format::kFloat>(ex);
    case Format::kHalf:
      return call.template as<Format::kHalf>(ex);
    case Format::kBFloat16:
      return call.template as<Format::kBFloat16>(ex);
    case Format::kE4M3:
      return call.template as<Format::kE4M3>(ex);
    case Format::kE5M2:
      return call.template as<Format::kE5M2>(ex);
    case Format::kInt8:
      return call.template as<Format::kInt8>(ex);
    case Format::kInt4:
      return call.template as<Format::kInt4>(ex);
    case Format::kInt2:
      return call.template as<Format::kInt2>(ex);
  }
}

// Asserts that `wire` has room for n rows of `dim` columns.
template <class Wire>
void assert_room([[maybe_unused]] Wire const& wire, [[maybe_unused]] std::size_t n, [[maybe_unused]] std::size_t dim) {
  GPUPS_ASSERT(wire.dim == dim && wire.codes.size() >= n * code_bytes(wire.format, dim));
  GPUPS_ASSERT(!has_scale(wire.format) || wire.scales.size() >= n);
}

}  // namespace gpups::kernels
