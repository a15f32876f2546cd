// SPDX-License-Identifier: Apache-2.0
// The values of a stream's block, floats or whole units of a grid, in any form that a stream has for them. On the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gpups/array.hpp"
#include "kernels/codec/packet_codes.hpp"
#include "kernels/sparse/stream_format.hpp"
#include "kernels/sparse/unit_values.hpp"

namespace gpups::kernels {

// Conversion of the floats of a stream's block to bytes and back, on the host. Readers accept any bytes.

// Write and read the codes of one format.
template <Format F>
void write_codes(float const* x, std::size_t n, float inverse, std::uint8_t* to, std::size_t bytes) {
  for (std::size_t i = 0; i < n; i += kPacketSize) {
    float part[kPacketSize];
    std::uint32_t code[kPacketSize];
    load_packet(x, i, n, part);
    for (float& one : part) one *= inverse;
    encode_packet<F>(part, code);
    PackedCodes<bits_of(F)>::of(code).store(to, i, bytes);
  }
}

template <Format F>
void read_codes(std::uint8_t const* from, std::size_t bytes, std::size_t n, float scale, float* to) {
  for (std::size_t i = 0; i < n; i += kPacketSize) {
    PackedCodes<bits_of(F)> packed;
    packed.load(from, i, bytes);
    std::uint32_t code[kPacketSize];
    packed.codes(code);
    float part[kPacketSize];
    decode_packet<F>(code, part);
    for (float& one : part) one *= scale;
    store_packet(part, to, i, n);
  }
}

// Reads 16-bit floats; Short is Half or BFloat16.
template <class Short>
void read_shorts(std::uint8_t const* from, std::size_t n, float* to) {
  for (std::size_t i = 0; i < n; i += kPacketSize) {
    std::size_t const count = std::min(kPacketSize, n - i);
    Short part[kPacketSize];
    float wide[kPacketSize];
    masked_load<sizeof part>(from + 2 * i, part, 2 * count);
    kernels::read_floats(part, wide);
    masked_store<sizeof wide>(wide, to + i, 4 * count);
  }
}

// Write and read n floats in the form `values`.
inline void write_floats(StreamValues values, float const* x, std::size_t n, std::uint8_t* to) {
  switch (values) {
    case StreamValues::kFloat:
      std::memcpy(to, x, 4 * n);
      return;
    case StreamValues::kHalf:
      write_codes<Format::kHalf>(x, n, 1, to, 2 * n);
      return;
    case StreamValues::kBFloat16:
      write_codes<Format::kBFloat16>(x, n, 1, to, 2 * n);
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
    case StreamValues::kBFloat16:
      read_shorts<BFloat16>(from, n, to);
      return;
    default:
      break;
  }
  float scale;
  std::memcpy(&scale, from, 4);
  read_codes<Format::kInt8>(from + 4, (n + 3) / 4 * 4, n, scale, to);
}

// Converts values of type T, float or std::int64_t (units), to and from bytes. The object holds the memory for values
// of the other type.
template <class T>
class BlockValues {
  using Other = std::conditional_t<std::is_same_v<T, float>, std::int64_t, float>;

 public:
  // Returns log2 of the bytes per value for units; 0 for other forms.
  std::uint8_t width_log2(ValueForm form, T const* x, std::size_t n) {
    return form.values == StreamValues::kUnits ? width_log2_of(units_of(form, x, n), n) : std::uint8_t{0};
  }

  // Writes n values. REQUIRES: n > 0; `to` has room for value_bytes().
  void write(ValueForm form, T const* x, std::size_t n, std::uint8_t* to) {
    if (form.values == StreamValues::kUnits) {
      std::int64_t const* const units = units_of(form, x, n);
      return write_units(units, n, width_log2_of(units, n), to);
    }
    if constexpr (std::is_same_v<T, float>) {
      write_floats(form.values, x, n, to);
    } else {
      float* const floats = other(n);
      double const unit = std::ldexp(1.0, form.grid_log2);
      for (std::size_t i = 0; i < n; ++i) floats[i] = static_cast<float>(static_cast<double>(x[i]) * unit);
      write_floats(form.values, floats, n, to);
    }
  }

  // Reads n values. `from` may contain any bytes.
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
  std::int64_t const* units_of(ValueForm form, T const* x, std::size_t n) {
    if constexpr (std::is_same_v<T, float>) {
      std::int64_t* const units = other(n);
      double const per_unit = std::ldexp(1.0, -form.grid_log2);
      for (std::size_t i = 0; i < n; ++i) units[i] = nearest_units(x[i], per_unit);
      return units;
    } else {
      return x;
    }
  }
  Other* other(std::size_t n) {
    if (memory_.size() < n) memory_ = Array<Other>(Device::host(), kStreamBlock);
    return memory_.data();
  }

  Array<Other> memory_;
};

}  // namespace gpups::kernels
