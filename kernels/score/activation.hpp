// SPDX-License-Identifier: Apache-2.0
// exp, the logistic function and softplus, without branches or calls: compilers vectorize loops over them, and every
// machine gives the same bits. Relative errors are below 3e-7.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/base/vector.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

// Returns exp(x) for x <= 0; the result is at least 1e-38.
GPUPS_FN inline float exp_negative(float x) {
  x = x < -87.0F ? -87.0F : x;
  float const shifted = multiply_add(x, 1.44269504F, 0x1.8p23F);  // rounds to an integer, in the low bits
  float const n = shifted - 0x1.8p23F;
  float const r = multiply_add(n, 2.12194440e-4F, multiply_add(n, -0.693359375F, x));  // ln 2 in two parts
  float p = 1.3888889e-3F;
  p = multiply_add(p, r, 8.3333333e-3F);
  p = multiply_add(p, r, 4.1666667e-2F);
  p = multiply_add(p, r, 1.6666667e-1F);
  p = multiply_add(p, r, 0.5F);
  p = multiply_add(p, r, 1.0F);
  p = multiply_add(p, r, 1.0F);
  std::uint32_t bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3F800000U;
  float scale;
  __builtin_memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

// Returns log(1 + e) for 0 <= e <= 1, as twice the artanh of e / (2 + e).
GPUPS_FN inline float log1p_unit(float e) {
  float const z = e / (2.0F + e);
  float const w = z * z;
  float p = 1.0F / 15;
  p = multiply_add(p, w, 1.0F / 13);
  p = multiply_add(p, w, 1.0F / 11);
  p = multiply_add(p, w, 1.0F / 9);
  p = multiply_add(p, w, 1.0F / 7);
  p = multiply_add(p, w, 1.0F / 5);
  p = multiply_add(p, w, 1.0F / 3);
  p = multiply_add(p, w, 1.0F);
  return 2.0F * z * p;
}

// softplus(x) = log(1 + exp(x)), and its derivative.
struct Softplus {
  float value, slope;
};
GPUPS_FN inline Softplus softplus(float x) {
  float const e = exp_negative(x < 0.0F ? x : -x);
  float const share = 1.0F / (1.0F + e);
  return {(x > 0.0F ? x : 0.0F) + log1p_unit(e), x < 0.0F ? e * share : share};
}

// Returns a loss in units of kLossUnit. NaN and losses above 2^10 count as 2^10, so the sum of 2^22 losses fits.
GPUPS_FN inline std::int64_t loss_units(double loss) {
  double const most = 0x1p10;
  return static_cast<std::int64_t>(floor((loss < most ? loss : most) * 0x1p30));
}

}  // namespace gpups::kernels
