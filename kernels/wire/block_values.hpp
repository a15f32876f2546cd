// SPDX-License-Identifier: Apache-2.0
// The values of a stream's block, floats or whole units of a grid, to bytes and back, on the host. Any bytes can be
// read.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gpups/array.hpp"
#include "kernels/wire/code_pack.hpp"
#include "kernels/wire/stream_format.hpp"

namespace gpups::kernels {

template <Format F>
void write_codes(float const* x, std::size_t n, float inverse, std::uint8_t* to, std::size_t bytes) {
  for (std::size_t i = 0; i < n; i += kPack) {
    float part[kPack];
    std::uint32_t code[kPack];
    load_pack(x, i, n, part);
    for (float& one : part) one *= inverse;
    encode_pack<F>(part, code);
    PackedCodes<bits_of(F)>::of(code).store(to, i, bytes);
  }
}

template <Format F>
void read_codes(std::uint8_t const* from, std::size_t bytes, std::size_t n, float scale, float* to) {
  for (std::size_t i = 0; i < n; i += kPack) {
    PackedCodes<bits_of(F)> packed;
    packed.load(from, i, bytes);
    std::uint32_t code[kPack];
    packed.codes(code);
    float part[kPack];
    decode_pack<F>(code, part);
    for (float& one : part) one *= scale;
    store_pack(part, to, i, n);
  }
}

// Halves or bfloats.
template <class Short>
void read_shorts(std::uint8_t const* from, std::size_t n, float* to) {
  for (std::size_t i = 0; i < n; i += kPack) {
    std::size_t const count = std::min(kPack, n - i);
    Short part[kPack];
    float wide[kPack];
    load_part<sizeof part>(from + 2 * i, part, 2 * count);
    kernels::read_floats(part, wide);
    store_part<sizeof wide>(wide, to + i, 4 * count);
  }
}

inline void write_floats(StreamValues values, float const* x, std::size_t n, std::uint8_t* to) {
  switch (values) {
    case StreamValues::kFloat:
      std::memcpy(to, x, 4 * n);
      return;
    case StreamValues::kHalf:
      write_codes<Format::kHalf>(x, n, 1, to, 2 * n);
      return;
    case StreamValues::kBFloat:
      write_codes<Format::kBFloat>(x, n, 1, to, 2 * n);
      return;
    default:
      break;
  }
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, magnitude_bits(x[i]));
  RowScale const scale = scale_of<Format::kInt8>(most);
  std::memcpy(to, &scale.scale, 4);
  write_codes<Format::kInt8>(x, n, scale.inverse, to + 4, (n + 3) / 4 * 4);
}

inline void read_floats(StreamValues values, std::uint8_t const* from, std::size_t n, float* to) {
  switch (values) {
    case StreamValues::kFloat:
      std::memcpy(to, from, 4 * n);
      return;
    case StreamValues::kHalf:
      read_shorts<Half>(from, n, to);
      return;
    case StreamValues::kBFloat:
      read_shorts<BFloat16>(from, n, to);
      return;
    default:
      break;
  }
  float scale;
  std::memcpy(&scale, from, 4);
  read_codes<Format::kInt8>(from + 4, (n + 3) / 4 * 4, n, scale, to);
}

// Log2 of the bytes of the narrowest signed integer that holds them all.
inline std::uint8_t width_log2_of(std::int64_t const* units, std::size_t n) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < n; ++i) all |= static_cast<std::uint64_t>(units[i] ^ units[i] >> 63);
  int const bits = std::bit_width(all) + 1;
  return bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3;
}

// Calls f with a zero of the signed integer of 2^width_log2 bytes.
template <class F>
void with_width(unsigned width_log2, F f) {
  switch (width_log2) {
    case 0:
      return f(std::int8_t{});
    case 1:
      return f(std::int16_t{});
    case 2:
      return f(std::int32_t{});
    default:
      return f(std::int64_t{});
  }
}

inline void write_units(std::int64_t const* units, std::size_t n, unsigned width_log2, std::uint8_t* to) {
  std::memset(to + value_bytes(StreamValues::kUnits, n, width_log2) - 8, 0, 8);
  with_width(width_log2, [&]<class Integer>(Integer) {
    for (std::size_t i = 0; i < n; ++i) {
      auto const narrow = static_cast<Integer>(units[i]);
      std::memcpy(to + i * sizeof narrow, &narrow, sizeof narrow);
    }
  });
}

inline void read_units(std::uint8_t const* from, std::size_t n, unsigned width_log2, std::int64_t* to) {
  with_width(width_log2, [&]<class Integer>(Integer narrow) {
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(&narrow, from + i * sizeof narrow, sizeof narrow);
      to[i] = narrow;
    }
  });
}

// Whole units nearest to x, or 0 for what they cannot say.
inline std::int64_t nearest_units(float x, double per_unit) {
  double const units = std::rint(static_cast<double>(x) * per_unit);
  return std::abs(units) < 0x1p63 ? static_cast<std::int64_t>(units) : 0;
}
// Units that a float stands for, of which it never says more than its sender had.
inline std::int64_t whole_units(float x, double per_unit) {
  double const units = static_cast<double>(x) * per_unit;
  return std::abs(units) < 0x1p63 ? static_cast<std::int64_t>(units) : 0;
}

// Values of type T, float or std::int64_t (units), in any form. The object is memory for them.
template <class T>
class BlockValues {
  using Other = std::conditional_t<std::is_same_v<T, float>, std::int64_t, float>;

 public:
  // Returns the width of units, 0 for other forms. REQUIRES: n > 0; `to` has room for n values of 8 bytes.
  std::uint8_t write(ValueForm form, T const* x, std::size_t n, std::uint8_t* to) {
    if constexpr (std::is_same_v<T, float>) {
      if (form.values != StreamValues::kUnits) return write_floats(form.values, x, n, to), std::uint8_t{0};
      std::int64_t* const units = other(n);
      double const per_unit = std::ldexp(1.0, -form.grid_log2);
      for (std::size_t i = 0; i < n; ++i) units[i] = nearest_units(x[i], per_unit);
      return write_narrow(units, n, to);
    } else {
      if (form.values == StreamValues::kUnits) return write_narrow(x, n, to);
      float* const floats = other(n);
      double const unit = std::ldexp(1.0, form.grid_log2);
      for (std::size_t i = 0; i < n; ++i) floats[i] = static_cast<float>(static_cast<double>(x[i]) * unit);
      write_floats(form.values, floats, n, to);
      return 0;
    }
  }

  void read(ValueForm form, std::uint8_t const* from, std::size_t n, unsigned width_log2, T* to) {
    if constexpr (std::is_same_v<T, float>) {
      if (form.values != StreamValues::kUnits) return read_floats(form.values, from, n, to);
      std::int64_t* const units = other(n);
      read_units(from, n, width_log2, units);
      double const unit = std::ldexp(1.0, form.grid_log2);
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(static_cast<double>(units[i]) * unit);
    } else {
      if (form.values == StreamValues::kUnits) return read_units(from, n, width_log2, to);
      float* const floats = other(n);
      read_floats(form.values, from, n, floats);
      double const per_unit = std::ldexp(1.0, -form.grid_log2);
      for (std::size_t i = 0; i < n; ++i) to[i] = whole_units(floats[i], per_unit);
    }
  }

 private:
  static std::uint8_t write_narrow(std::int64_t const* units, std::size_t n, std::uint8_t* to) {
    std::uint8_t const width_log2 = width_log2_of(units, n);
    write_units(units, n, width_log2, to);
    return width_log2;
  }
  Other* other(std::size_t n) {
    if (memory_.size() < n) memory_ = Array<Other>(Device::host(), kStreamBlock);
    return memory_.data();
  }

  Array<Other> memory_;
};

}  // namespace gpups::kernels
