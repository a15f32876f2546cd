// SPDX-License-Identifier: Apache-2.0
// Bags of entries, where each bag's pooled row goes, and where the rows of entries are: what bodies that pool share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/initial_value.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

struct Bags {
  std::size_t count;
  View<std::uint32_t const> offsets;  // (count + 1); empty: entry b is bag b
  View<float const> weights;          // (entries); empty: all 1
  View<std::uint32_t const> targets;  // (count), row of a bag; empty: row b
  bool mean;
  MatrixView<float> out;

  GPUPS_ANY_FN std::uint32_t begin(std::size_t bag) const {
    return offsets.empty() ? static_cast<std::uint32_t>(bag) : offsets[bag];
  }
  GPUPS_ANY_FN float* row(std::size_t bag) const { return out.row(targets.empty() ? bag : targets[bag]); }
  GPUPS_ANY_FN float weight(std::uint32_t entry) const { return weights.empty() ? 1.0F : weights[entry]; }
  // What a sum of so many entries is multiplied with.
  GPUPS_ANY_FN float scale(std::uint32_t entries) const {
    return mean && entries > 0 ? 1.0F / static_cast<float>(entries) : 1.0F;
  }
};

// A source says where an entry's row is: row() is null where there is none, and its numbers are then those of absent().
// On the host a source by key finds the numbers of some entries at a time, from which row() goes on.

// Rows of a matrix by position.
struct MatrixEntries {
  using Number = float;
  static constexpr bool kByKey = false;
  MatrixView<float const> rows;
  View<std::uint32_t const> positions;

  GPUPS_ANY_FN std::size_t stride() const { return rows.stride(); }
  GPUPS_ANY_FN float const* row(std::uint32_t entry) const { return rows.row(positions[entry]); }
  GPUPS_FN FourValues absent(std::uint32_t, std::size_t) const { return {}; }
};

}  // namespace gpups::kernels
