// SPDX-License-Identifier: Apache-2.0
// Computes the initial values of a row inside of kernels: a pure function of (seed, key, column), uniform, normal or
// constant.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpups/table.hpp"
#include "kernels/base/function.hpp"
#include "kernels/base/philox.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// Normal random numbers (Box and Muller, 1958) with the same bits on host and device. Logarithm, sine and cosine are
// polynomials in double in which every multiply-add is an explicit fma, so that rounding does not depend on the
// compiler.
struct NormalPair {
  float first, second;
};

// Returns the logarithm of (2 word + 1) / 2^33, which is in (0, 1), with an error of about 1e-11.
GPUPS_ANY_FN inline double log_of_word(std::uint32_t word) {
  double m = 2.0 * static_cast<double>(word) + 1.0;  // exact, so rounding does not depend on the compiler
  std::uint64_t bits = 0;
  memcpy(&bits, &m, sizeof m);
  double const exponent = static_cast<double>(static_cast<int>(bits >> 52) - 1023 - 33);
  bits = (bits & 0xFFFFFFFFFFFFFU) | std::uint64_t{1023} << 52;
  memcpy(&m, &bits, sizeof m);  // in [1, 2)
  // log m = 2 atanh(t), t = (m - 1) / (m + 1) in [0, 1/3].
  double const t = (m - 1) / (m + 1);
  double const t2 = t * t;
  double series = 1.0 / 19;
  for (int k = 17; k >= 1; k -= 2) series = fma(series, t2, 1.0 / k);
  double const log_m = 2 * t * series;
  return fma(exponent, 0.69314718055994530942, log_m);
}

// Returns two independent draws with mean 0 and standard deviation 1, from two random words.
GPUPS_ANY_FN inline NormalPair normal_pair(std::uint32_t a, std::uint32_t b) {
  double const radius = sqrt(-2 * log_of_word(a));
  // The top two bits of the angle select a quarter turn, and the others give x in [-pi/4, pi/4).
  double const x = (static_cast<double>(b & 0x3FFFFFFFU) - 0x1p29) * (1.57079632679489661923 * 0x1p-30);
  double const x2 = x * x;
  double sine = fma(x2, -1.0 / 39916800, 1.0 / 362880);
  sine = fma(sine, x2, -1.0 / 5040);
  sine = fma(sine, x2, 1.0 / 120);
  sine = fma(sine, x2, -1.0 / 6);
  sine = x * fma(sine, x2, 1.0);
  double cosine = fma(x2, 1.0 / 479001600, -1.0 / 3628800);
  cosine = fma(cosine, x2, 1.0 / 40320);
  cosine = fma(cosine, x2, -1.0 / 720);
  cosine = fma(cosine, x2, 1.0 / 24);
  cosine = fma(cosine, x2, -0.5);
  cosine = fma(cosine, x2, 1.0);
  bool const swap = (b >> 30 & 1U) != 0;
  double const sign = b >> 31 != 0 ? -radius : radius;
  return {static_cast<float>(sign * (swap ? -sine : cosine)), static_cast<float>(sign * (swap ? cosine : sine))};
}

struct FourValues {
  float value[4];
};

// Returns the initial values of the columns 4 * quad .. 4 * quad + 3.
GPUPS_FN inline FourValues initial_values(Initializer init, std::uint64_t seed, Key key, std::size_t quad) {
  float const scale = init.scale;
  if (init.kind == Initializer::Kind::kConstant) return {{scale, scale, scale, scale}};
  std::uint64_t const k = number(key);
  Philox4 const r = philox(philox_key(seed), {{static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32),
                                               static_cast<std::uint32_t>(quad), 0}});
  FourValues q;
  if (init.kind == Initializer::Kind::kNormal) {
    NormalPair const left = normal_pair(r.word[0], r.word[1]), right = normal_pair(r.word[2], r.word[3]);
    q = {{left.first * scale, left.second * scale, right.first * scale, right.second * scale}};
  } else {
    for (int i = 0; i < 4; ++i) q.value[i] = (2 * uniform01(r.word[i]) - 1) * scale;  // 2 u - 1 is exact
  }
  return q;
}

}  // namespace gpups::kernels
