// SPDX-License-Identifier: Apache-2.0
// A simple implementation of the wire formats: values of codes, positions of codes in bytes, and largest errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/codec/format.hpp"

namespace gpups::test {

// Returns the value of a float with these numbers of bits.
inline double small_float(std::uint32_t code, int exponent_bits, int mantissa_bits, int bias) {
  std::uint32_t const mantissa = code & ((1U << mantissa_bits) - 1);
  int const exponent = static_cast<int>(code >> mantissa_bits & ((1U << exponent_bits) - 1));
  double const sign = (code >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1 : 1;
  double const whole = std::ldexp(1.0, mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(mantissa / whole, 1 - bias);
  return sign * std::ldexp(1 + mantissa / whole, exponent - bias);
}

// Returns the value of a code, before it is multiplied by the row's scale.
inline double value_of(kernels::Format format, std::uint32_t code) {
  using kernels::Format;
  auto const integer = [code](int bits) {
    return static_cast<double>(code >= (1U << (bits - 1)) ? static_cast<int>(code) - (1 << bits)
                                                          : static_cast<int>(code));
  };
  switch (format) {
    case Format::kFloat:
      return small_float(code, 8, 23, 127);
    case Format::kHalf:
      return small_float(code, 5, 10, 15);
    case Format::kBFloat16:
      return small_float(code, 8, 7, 127);
    case Format::kE4M3:
      return small_float(code, 4, 3, 7);
    case Format::kE5M2:
      return small_float(code, 5, 2, 15);
    case Format::kInt8:
      return integer(8);
    case Format::kInt4:
      return integer(4);
    case Format::kInt2:
      return integer(2);
  }
  return 0;
}

// Returns the code of a column, read bit by bit.
inline std::uint32_t code_at(std::uint8_t const* row, kernels::Format format, std::size_t column) {
  std::size_t const bits = kernels::bits_of(format);
  std::uint32_t code = 0;
  for (std::size_t b = 0; b < bits; ++b) {
    std::size_t const at = column * bits + b;
    code |= (row[at / 8] >> (at % 8) & 1U) << b;
  }
  return code;
}

// Returns the values of rows on the wire, (n, dim).
inline std::vector<double> decoded(std::vector<std::uint8_t> const& codes, std::vector<float> const& scales,
                                   kernels::Format format, std::size_t n, std::size_t dim) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) {
    double const scale = kernels::has_scale(format) ? static_cast<double>(scales[i]) : 1;
    for (std::size_t j = 0; j < dim; ++j) {
      values.push_back(scale *
                       value_of(format, code_at(codes.data() + i * kernels::code_bytes(format, dim), format, j)));
    }
  }
  return values;
}

// Returns the largest error of a value x in a row whose largest magnitude is `most`.
inline double error_max(kernels::Format format, double x, double most) {
  using kernels::Format;
  constexpr double kSlack = 1 + 0x1p-14;
  x = std::abs(x);
  switch (format) {
    case Format::kFloat:
      return 0;
    case Format::kHalf:
      return x > 65504 ? x - 65504 : std::max(0x1p-11 * x, 0x1p-25);
    case Format::kBFloat16:
      return std::max(0x1p-8 * x, 0x1p-134);
    case Format::kE4M3:
      return std::max(0x1p-4 * x, 0x1p-17 * most);
    case Format::kE5M2:
      return std::max(0x1p-3 * x, 0x1p-31 * most);
    case Format::kInt8:
      return most / 254 * kSlack;
    case Format::kInt4:
      return most / 14 * kSlack;
    case Format::kInt2:
      return most / 2 * kSlack;
  }
  return 0;
}

}  // namespace gpups::test
