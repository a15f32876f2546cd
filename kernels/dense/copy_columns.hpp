// SPDX-License-Identifier: Apache-2.0
// Copies a matrix into the first columns of another one, or adds it to them. Moves 8 bytes per number, or 12 with
// `add`.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

struct CopyColumns {
  MatrixView<float const> from;  // (m, columns), of any stride
  MatrixView<float> to;          // (m, >= columns), of any stride; further columns do not change
  bool add = false;              // to += from
};
void copy_columns(Stream& stream, CopyColumns const& arguments);

}  // namespace gpups::kernels
