// SPDX-License-Identifier: Apache-2.0
// The optimizer's step of one row.
#pragma once

#include <cmath>

#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"
#include "kernels/life.hpp"
#include "kernels/row_columns.hpp"
#include "kernels/update_rows.hpp"

namespace gpups::kernels {

// Asks for what update_row() will read of a row, into the second cache: the first is busy with sources. Always inlined:
// g++ drops calls of a function that only prefetches.
__attribute__((always_inline)) GPUPS_FN inline void prefetch_row([[maybe_unused]] UpdateRows const& u,
                                                                 [[maybe_unused]] std::uint32_t id) {
#ifndef __CUDACC__
  float const* const value = u.values.row(id);
  for (std::size_t j = 0; j < u.values.stride; j += 16) __builtin_prefetch(value + j, 0, 2);
  if (u.state.stride > 0) {
    float const* const state = u.state.row(id);
    for (std::size_t j = 0; j < u.state.stride; j += 16) __builtin_prefetch(state + j, 0, 2);
  }
  __builtin_prefetch(u.life.row(id), 0, 2);
#endif
}

// The mean's gradient in some columns, from an exact sum or as it is; 0 in the padding.
struct MeanOfUnits {
  std::int64_t const* sum;
  double unit;
  template <class Columns>
  GPUPS_FN auto at(Columns, std::size_t j) const {
    return scaled<typename Columns::Value>(sum + j, unit);
  }
};
struct Mean {
  float const* mean;
  template <class Columns>
  GPUPS_FN auto at(Columns columns, std::size_t j) const {
    return columns.get(mean + j);
  }
};

// Steps return 0, or what is not a number where the row's new value or state is not finite.
template <class Columns, class GradientAt>
GPUPS_FN inline float sgd_step(Columns columns, UpdateRows const& u, float* value, GradientAt gradient) {
  using V = typename Columns::Value;
  return columns.sum(u.values.stride, [=, rate = u.rate](std::size_t j) {
    V const x = columns.get(value + j) - rate * gradient(j);
    columns.put(value + j, x);
    return 0.0F * x;
  });
}

template <class Columns, class GradientAt>
GPUPS_FN inline float adagrad_step(Columns columns, UpdateRows const& u, float* value, float* state,
                                   GradientAt gradient) {
  using V = typename Columns::Value;
  return columns.sum(u.values.stride, [=, rate = u.rate, epsilon = u.optimizer.epsilon](std::size_t j) {
    V const g = gradient(j), s = columns.get(state + j) + g * g;
    columns.put(state + j, s);
    V const x = columns.get(value + j) - quotient(rate * g, root(s) + epsilon);
    columns.put(value + j, x);
    return 0.0F * s + 0.0F * x;
  });
}

template <class Columns, class GradientAt>
GPUPS_FN inline float rowwise_adagrad_step(Columns columns, UpdateRows const& u, float* value, float* state,
                                           GradientAt gradient) {
  using V = typename Columns::Value;
  float const squares = columns.sum(u.values.stride, [=](std::size_t j) { return gradient(j) * gradient(j); });
  float const s = *state + squares / static_cast<float>(u.dim);
  float const step = quotient(u.rate, std::sqrt(s) + u.optimizer.epsilon);
  columns.sync();  // all have read the state
  if (columns.first()) *state = s;
  return 0.0F * s + columns.sum(u.values.stride, [=](std::size_t j) {
    V const x = columns.get(value + j) - step * gradient(j);
    columns.put(value + j, x);
    return 0.0F * x;
  });
}

template <class Columns, class MeanAt>
GPUPS_FN inline void update_columns(Columns columns, UpdateRows const& u, std::uint32_t id, MeanAt mean) {
  std::uint32_t* const life = u.life.row(id);
  if (u.admit_at > 1 && !is_admitted(life[0], u.admit_at)) return;
  float* const value = u.values.row(id);
  float* const state = u.state.stride > 0 ? u.state.row(id) : nullptr;

  float clip = 1;
  if (u.optimizer.clip_norm > 0) {
    float const norm = std::sqrt(
        columns.sum(u.values.stride, [=](std::size_t j) { return mean.at(columns, j) * mean.at(columns, j); }));
    if (norm > u.optimizer.clip_norm) clip = u.optimizer.clip_norm / norm;
  }
  auto const gradient = [=, l2 = u.optimizer.l2](std::size_t j) {
    return clip * mean.at(columns, j) + l2 * columns.get(value + j);
  };

  float faults = 0;
  switch (u.optimizer.kind) {
    case Optimizer::Kind::kSgd:
      faults = sgd_step(columns, u, value, gradient);
      break;
    case Optimizer::Kind::kAdagrad:
      faults = adagrad_step(columns, u, value, state, gradient);
      break;
    case Optimizer::Kind::kRowwiseAdagrad:
      faults = rowwise_adagrad_step(columns, u, value, state, gradient);
      break;
  }
  if (!columns.first()) return;
  life[0] = after_update(life[0]);
  life[1] = u.step;
  if (!(faults == 0)) atomic_min(u.fault.data(), id);
}

// Nothing for a row that waits. Columns go as far as the padding does.
template <class MeanAt>
GPUPS_FN inline void update_row(NativeLanes lanes, UpdateRows const& u, std::uint32_t id, MeanAt mean) {
#ifdef __CUDACC__
  update_columns(DeviceColumns{lanes}, u, id, mean);
#else
  static_cast<void>(lanes);
  u.values.stride < kVector ? update_columns(HostColumns<Quad>{}, u, id, mean)
                            : update_columns(HostColumns<Vector>{}, u, id, mean);
#endif
}

}  // namespace gpups::kernels
