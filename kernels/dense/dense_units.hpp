// SPDX-License-Identifier: Apache-2.0
// The units of an array of dense parameters, and scratch memory for their norms. A unit is an array whose norms LAMB
// uses: the weights of a layer, or its bias.
//
// A unit is cut into parts, one for each team of lanes, and the sums of the parts are added in order: they do not
// depend on how many teams run at the same time. Uses 12 bytes for each part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

// The largest number of parameters of a part, which one team of lanes handles.
inline constexpr std::size_t kDensePart = 256;
// Sizes of units and of parameter arrays are multiples of this, so that vectors of the host cover them.
inline constexpr std::size_t kDenseAlignment = 16;

// See above. The arrays are on one device; kernels get them from ref().
class DenseUnits {
 public:
  // Arrays for use in kernels. They are valid as long as the DenseUnits.
  struct Ref {
    // (units + 1): where each unit begins in the array; the last element is the end of the array
    View<std::uint32_t const> begins;
    // (units + 1): the number of the first part of each unit; the last element is the number of parts
    View<std::uint32_t const> first_parts;
    View<std::uint32_t const> unit_of;  // (parts): the unit of each part
    // Scratch memory: the sums of squares of updates and of values of each part (parts, 2), and the trust ratio of each
    // unit (units).
    View<float> squares;
    View<float> trust;
  };

  DenseUnits() = default;
  // begins: where each unit begins, and at the end where the last unit ends; multiples of kDenseAlignment in ascending
  // order, the first is 0. Throws Error if the last needs more than 32 bits. Blocks.
  DenseUnits(Stream& stream, std::span<std::size_t const> begins);

  Ref ref() const { return {begins_, first_parts_, unit_of_, squares_, trust_}; }
  std::size_t bytes() const;

 private:
  Array<std::uint32_t> begins_, first_parts_, unit_of_;
  Array<float> squares_, trust_;
};

}  // namespace gpups::kernels
