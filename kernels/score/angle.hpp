// SPDX-License-Identifier: Apache-2.0
// Cosine and sine together, without branches or calls, of a float or a vector of floats. Absolute errors are below 2e-7
// for angles up to 1000, and grow with larger angles.
#pragma once

#include "kernels/base/vector.hpp"

namespace gpups::kernels {

template <class T>
struct CosineSine {
  T cosine, sine;
};
// x: in radians.
template <class T>
GPUPS_FN inline CosineSine<T> cosine_sine(T x) {
  T const shifted = multiply_add(x, 0.636619772F, 0x1.8p23F);  // rounds to whole quarter turns, in the low bits
  T const n = shifted - 0x1.8p23F;
  // pi / 2 in three parts
  T const r = multiply_add(n, -0x1.54442ep-20F, multiply_add(n, -0x1.fap-12F, multiply_add(n, -0x1.92p0F, x)));
  T const z = r * r;
  // A least-squares fit at Chebyshev nodes for |r| <= pi / 4.
  T const a = multiply_add(multiply_add(-1.9497271e-4F, z, 8.3319842e-3F), z, -1.6666650e-1F);
  T const b = multiply_add(multiply_add(multiply_add(2.4371513e-5F, z, -1.3886527e-3F), z, 4.1666614e-2F), z, -0.5F);
  T const sine = multiply_add(r * z, a, r), cosine = multiply_add(z, b, 1.0F);

  auto const quarters = bits_of(shifted);
  auto const odd = (quarters & 1) != 0;
  T const c = odd ? sine : cosine, s = odd ? cosine : sine;
  return {from_bits<T>(bits_of(c) ^ ((quarters + 1) & 2) << 30), from_bits<T>(bits_of(s) ^ (quarters & 2) << 30)};
}

}  // namespace gpups::kernels
