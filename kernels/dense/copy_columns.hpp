// SPDX-License-Identifier: Apache-2.0
// Copies a matrix into another of any stride, or adds it: columns beside others. Moves 8 or 12 bytes per number.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

struct CopyColumns {
  MatrixView<float const> from;  // (m, columns), of any stride
  MatrixView<float> to;          // (m, >= columns), of any stride; what is beyond them stays
  bool add = false;              // to += from
};
void copy_columns(Stream& stream, CopyColumns const& arguments);

}  // namespace gpups::kernels
