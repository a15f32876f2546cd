// SPDX-License-Identifier: Apache-2.0
// The units of an array of dense parameters, whose norms LAMB takes, and scratch for these norms.
//
// A unit is cut into parts, each of which one team of lanes takes, and its sums are added in the order of the parts: so
// that they do not depend on how many teams run at once. Takes 12 bytes for each part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Parameters of a team of lanes, at most.
inline constexpr std::size_t kDensePart = 256;
// What the sizes of units, and of arrays of parameters, are multiples of: vectors on the host.
inline constexpr std::size_t kDenseAlignment = 16;

class DenseUnits {
 public:
  struct Ref {
    View<std::uint32_t const> begins;       // (units + 1): of units, in the array; the last is where it ends
    View<std::uint32_t const> first_parts;  // (units + 1)
    View<std::uint32_t const> unit_of;      // (parts)
    // Scratch: the squares of updates and of values in each part (parts, 2), and the trust ratio of each unit (units).
    View<float> squares;
    View<float> trust;
  };

  DenseUnits() = default;
  // begins: where each unit begins, and, last, where the last one ends; ascending multiples of kDenseAlignment, from 0
  // on. Throws Error where that is beyond 32 bits. Waits.
  DenseUnits(Stream& stream, std::span<std::size_t const> begins);

  Ref ref() const { return {begins_, first_parts_, unit_of_, squares_, trust_}; }
  std::size_t bytes() const;

 private:
  Array<std::uint32_t> begins_, first_parts_, unit_of_;
  Array<float> squares_, trust_;
};

}  // namespace gpups::kernels
