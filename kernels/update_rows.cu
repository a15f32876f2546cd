// SPDX-License-Identifier: Apache-2.0
#include "kernels/update_rows.hpp"

#include <cmath>

#include "kernels/assert.hpp"
#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

#ifndef __CUDACC__
std::size_t state_columns(Optimizer const& optimizer, std::size_t dim) {
  switch (optimizer.kind) {
    case Optimizer::Kind::kSgd:
      return 0;
    case Optimizer::Kind::kAdagrad:
      return row_stride(dim);
    case Optimizer::Kind::kRowwiseAdagrad:
      return 1;
  }
  return 0;
}
#endif

// 1 where x is not finite, else 0: for counting in sums.
GPUPS_FN inline float not_finite(float x) { return x - x == 0 ? 0.0F : 1.0F; }

template <Space S>
void run(Exec<S> ex, UpdateRows const& u) {
  GPUPS_ASSERT(u.sums.rows() >= u.ids.size() && u.sums.columns() >= u.dim && u.values.stride >= u.dim);
  double const unit = std::ldexp(u.scale, u.grid_log2);
  each_row(ex, u.ids.size(), [u, unit] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::uint32_t const id = u.ids[i];
    std::size_t const dim = u.dim;
    if (i + kRowsAhead < u.ids.size()) {
      std::uint32_t const later = u.ids[i + kRowsAhead];
      lanes.prefetch(u.values.row(later), dim * sizeof(float));
      if (u.optimizer.kind != Optimizer::Kind::kSgd) lanes.prefetch(u.state.row(later), u.state.stride * sizeof(float));
    }
    std::int64_t const* const sum = u.sums.row(i);
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
    auto const gradient = [=](std::size_t j) { return static_cast<float>(static_cast<double>(sum[j]) * unit) * clip; };

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
      faults =
          not_finite(s) + lanes.sum(dim, [=](std::size_t j) { return not_finite(value[j] -= step * gradient(j)); });
      if (lanes.first()) *state = s;
    }
    if (!lanes.first()) return;
    std::uint32_t* const life = u.life.row(id);
    *life += *life == 0 ? 2 : 1;
    if (faults > 0) atomic_min(u.fault.data(), id);
  });
}

GPUPS_KERNEL(update_rows, UpdateRows)

}  // namespace gpups::kernels
