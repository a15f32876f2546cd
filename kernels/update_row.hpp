// SPDX-License-Identifier: Apache-2.0
// The optimizer's step of one row.
#pragma once

#include <cmath>

#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"
#include "kernels/life.hpp"
#include "kernels/update_rows.hpp"

namespace gpups::kernels {

// 1 where x is not finite, else 0: for counting in sums.
GPUPS_FN inline float not_finite(float x) { return x - x == 0 ? 0.0F : 1.0F; }

// Asks for what update_row() will read of a row. Always inlined: g++ drops calls of a function that only prefetches.
__attribute__((always_inline)) GPUPS_FN inline void prefetch_row(NativeLanes lanes, UpdateRows const& u,
                                                                 std::uint32_t id) {
  lanes.prefetch(u.values.row(id), u.dim * sizeof(float));
  if (u.optimizer.kind != Optimizer::Kind::kSgd) lanes.prefetch(u.state.row(id), u.state.stride * sizeof(float));
}

// `sum` is the row's gradient in units of the grid; unit turns it into the mean's. Nothing for a row that waits.
GPUPS_FN inline void update_row(NativeLanes lanes, UpdateRows const& u, double unit, std::uint32_t id,
                                std::int64_t const* sum) {
  std::uint32_t* const life = u.life.row(id);
  if (u.admit_at > 1 && !is_admitted(life[0], u.admit_at)) return;
  std::size_t const dim = u.dim;
  float* const value = u.values.row(id);
  float const rate = u.rate, epsilon = u.optimizer.epsilon;

  float clip = 1;
  if (u.optimizer.clip_norm > 0) {
    float const norm = std::sqrt(lanes.sum(dim, [=](std::size_t j) {
      auto const g = static_cast<float>(static_cast<double>(sum[j]) * unit);
      return g * g;
    }));
    if (norm > u.optimizer.clip_norm) clip = u.optimizer.clip_norm / norm;
  }
  float const l2 = u.optimizer.l2;
  auto const gradient = [=](std::size_t j) {
    return static_cast<float>(static_cast<double>(sum[j]) * unit) * clip + l2 * value[j];
  };

  float faults = 0;
  if (u.optimizer.kind == Optimizer::Kind::kSgd) {
    faults = lanes.sum(dim, [=](std::size_t j) { return not_finite(value[j] -= rate * gradient(j)); });
  } else if (u.optimizer.kind == Optimizer::Kind::kAdagrad) {
    float* const state = u.state.row(id);
    faults = lanes.sum(dim, [=](std::size_t j) {
      float const g = gradient(j);
      float const s = state[j] + g * g;
      state[j] = s;
      value[j] -= rate * g / (std::sqrt(s) + epsilon);
      return not_finite(s) + not_finite(value[j]);
    });
  } else {
    float* const state = u.state.row(id);
    float const before = *state;
    float const squares = lanes.sum(dim, [=](std::size_t j) { return gradient(j) * gradient(j); });
    float const s = before + squares / static_cast<float>(dim);
    float const step = rate / (std::sqrt(s) + epsilon);
    faults = not_finite(s) + lanes.sum(dim, [=](std::size_t j) { return not_finite(value[j] -= step * gradient(j)); });
    lanes.sync();  // all have read the state
    if (lanes.first()) *state = s;
  }
  if (!lanes.first()) return;
  life[0] = after_update(life[0]);
  life[1] = u.step;
  if (faults > 0) atomic_min(u.fault.data(), id);
}

}  // namespace gpups::kernels
