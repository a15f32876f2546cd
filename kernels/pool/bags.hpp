// SPDX-License-Identifier: Apache-2.0
// The bags of a pooling kernel: their entries, the rows that they are pooled into, and the sources of the rows of
// entries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/rows/initial_value.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// The bags, the weights of their entries, and the matrix that they are pooled into.
struct Bags {
  std::size_t count;
  View<std::uint32_t const> offsets;  // (count + 1); empty: entry b is bag b
  View<float const> weights;          // (entries); empty: all 1
  View<std::uint32_t const> targets;  // (count), the row of `out` of each bag; empty: bag b is row b
  bool mean;
  MatrixView<float> out;

  GPUPS_ANY_FN std::uint32_t begin(std::size_t bag) const {
    return offsets.empty() ? static_cast<std::uint32_t>(bag) : offsets[bag];
  }
  GPUPS_ANY_FN float* row(std::size_t bag) const { return out.row(targets.empty() ? bag : targets[bag]); }
  GPUPS_ANY_FN float weight(std::uint32_t entry) const { return weights.empty() ? 1.0F : weights[entry]; }
  // Returns the factor of the sum of `entries` entries: 1, or 1 / entries for a mean.
  GPUPS_ANY_FN float scale(std::uint32_t entries) const {
    return mean && entries > 0 ? 1.0F / static_cast<float>(entries) : 1.0F;
  }
};

// A source returns the rows of entries: row() is null if an entry has no row, and absent() then returns the values of
// the missing row. On the host, a source of entries with keys first finds the row numbers of several entries at once.

// A source for entries that are positions of rows in a matrix.
struct MatrixEntries {
  using Number = float;
  static constexpr bool kByKey = false;
  MatrixView<float const> rows;
  View<std::uint32_t const> positions;

  GPUPS_ANY_FN std::size_t stride() const { return rows.stride(); }
  GPUPS_ANY_FN float const* row(std::uint32_t entry) const { return rows.row(positions[entry]); }
#ifdef __CUDACC__
  __device__ float const* row(std::uint32_t entry, bool has) const { return has ? row(entry) : nullptr; }
#endif
  GPUPS_FN FourValues absent(std::uint32_t, std::size_t) const { return {}; }
};

}  // namespace gpups::kernels
