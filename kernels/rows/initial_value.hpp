// SPDX-License-Identifier: Apache-2.0
// Computes the initial values of a row inside of kernels: a pure function of (seed, key, column).
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/table.hpp"
#include "kernels/base/normal.hpp"
#include "kernels/base/philox.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

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
