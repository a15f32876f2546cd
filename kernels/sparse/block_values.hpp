// SPDX-License-Identifier: Apache-2.0
// The values of a stream's block, floats or whole units of a grid, in any form that a stream has for them. On the host.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gpups/array.hpp"
#include "kernels/sparse/float_values.hpp"
#include "kernels/sparse/unit_values.hpp"

namespace gpups::kernels {

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
