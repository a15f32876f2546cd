// SPDX-License-Identifier: Apache-2.0
// The step of the optimizer for one row.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/base/atomic.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/update/optimizer_steps.hpp"
#include "kernels/update/row_columns.hpp"
#include "kernels/update/row_values.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups::kernels {

#ifndef __CUDACC__
template <class T>
[[gnu::always_inline]] inline void prefetch_value(Rows<T> const& values, std::uint32_t id) {
  T const* const value = values.row(id);
  for (std::size_t j = 0; j < values.stride; j += 64 / sizeof(T)) __builtin_prefetch(value + j, 0, 2);
}
#endif

// Prefetches what update_row() will read of a row into the second-level cache, because the first-level cache is busy
// with sources. Does nothing on a GPU.
GPUPS_INLINED_FN void prefetch_row([[maybe_unused]] UpdateRows const& u, [[maybe_unused]] std::uint32_t id) {
#ifndef __CUDACC__
  if (u.values.type == DataType::kFloat) {
    prefetch_value(u.values.as<float>(), id);
  } else {
    u.values.type == DataType::kHalf ? prefetch_value(u.values.as<Half>(), id)
                                     : prefetch_value(u.values.as<BFloat16>(), id);
    __builtin_prefetch(u.keys.row(id), 0, 2);
  }
  if (u.state.stride > 0) {
    float const* const state = u.state.row(id);
    for (std::size_t j = 0; j < u.state.stride; j += 16) __builtin_prefetch(state + j, 0, 2);
  }
  __builtin_prefetch(u.lifecycle.row(id), 0, 2);
#endif
}

// The mean gradient of a row, from an exact sum. 0 in the padding.
struct MeanOfUnits {
  std::int64_t const* sum;
  double unit;
  template <class Columns>
  GPUPS_FN auto at(Columns, std::size_t j) const {
    return scaled<typename Columns::Value>(sum + j, unit);
  }
};
#ifdef __CUDACC__
// On a GPU each lane keeps the gradients and values of its first columns in registers, because some optimizers need
// them more than once. Rows of up to kRowPartials columns are read once.
struct HeldMean {
  MeanOfUnits mean;
  Quad first;
  __device__ Quad at(DeviceColumns columns, std::size_t j) const {
    return j < kRowPartials ? first : mean.at(columns, j);
  }
};
template <class Values>
struct HeldValues {
  Values values;
  Quad first;
  __device__ Quad get(std::size_t j) const { return j < kRowPartials ? first : values.get(j); }
  __device__ Quad put(std::size_t j, Quad x) const { return values.put(j, x); }
};
__device__ inline HeldMean hold_mean(DeviceColumns columns, MeanOfUnits mean, std::size_t width) {
  return {mean, columns.first_scaled(mean.sum, width, mean.unit)};
}
template <class Values>
__device__ HeldValues<Values> hold_values(DeviceColumns columns, Values values, std::size_t width) {
  return {values, 4 * columns.lanes.lane < width ? values.get(4 * columns.lanes.lane) : Quad{}};
}
#else
template <class C, class MeanAt>
GPUPS_INLINED_FN MeanAt hold_mean(C, MeanAt mean, std::size_t) {
  return mean;
}
template <class C, class Values>
GPUPS_INLINED_FN Values hold_values(C, Values values, std::size_t) {
  return values;
}
#endif
#ifndef __CUDACC__
// The mean gradient of a row, from an exact sum of doubles. 0 in the padding. A sum of 0 may be -0.
struct MeanOfDoubles {
  double const* sum;
  double scale;
  template <class Columns>
  auto at(Columns, std::size_t j) const {
    return scaled<typename Columns::Value>(sum + j, scale);
  }
};
#endif
// The mean gradient of a row, from floats. 0 in the padding.
struct Mean {
  float const* mean;
  template <class Columns>
  GPUPS_FN auto at(Columns columns, std::size_t j) const {
    return columns.get(mean + j);
  }
};

// Updates values, state and lifecycle of a row. Does nothing for a row that waits for admission.
template <class C, class Values, class MeanAt>
GPUPS_INLINED_FN void update_columns(C columns, UpdateRows const& u, std::uint32_t id, Values values,
                                     MeanAt gradients) {
  using Kind = Optimizer::Kind;
  std::uint32_t* const lifecycle = u.lifecycle.row(id);
  if (u.admission_count > 1 && !is_admitted(lifecycle[0], u.admission_count)) return;
  std::uint32_t const after = after_update(lifecycle[0]);
  std::uint32_t const updates = after - 1;
  std::size_t const width = u.values.type == DataType::kFloat ? u.values.stride : row_stride(u.dim);
  float* const state = u.state.stride > 0 ? u.state.row(id) : nullptr;
  auto const mean = hold_mean(columns, gradients, width);
  auto const value = hold_values(columns, values, width);
  RowStep<C, std::remove_const_t<decltype(value)>> const row{
      .columns = columns,
      .width = width,
      .dim = u.dim,
      .value = value,
      .state = state,
      .more_state = u.state.stride > width ? state + width : nullptr,
      .rate = u.rate,
      .optimizer = u.optimizer};

  float clip = 1;
  if (u.optimizer.clip_norm > 0) {
    float const norm = std::sqrt(columns.sum(
        row.width, [=](std::size_t j) GPUPS_INLINED_BODY { return mean.at(columns, j) * mean.at(columns, j); }));
    if (norm > u.optimizer.clip_norm) clip = u.optimizer.clip_norm / norm;
  }
  auto const clipped = [=](std::size_t j) GPUPS_INLINED_BODY { return clip * mean.at(columns, j); };
  auto const regularised = [=, l2 = u.optimizer.l2, value = row.value](std::size_t j)
                               GPUPS_INLINED_BODY { return clip * mean.at(columns, j) + l2 * value.get(j); };

  float const nonfinite =
      u.optimizer.kind == Kind::kSgd              ? sgd_step(row, regularised)
      : u.optimizer.kind == Kind::kAdagrad        ? adagrad_step(row, regularised)
      : u.optimizer.kind == Kind::kRowwiseAdagrad ? rowwise_adagrad_step(row, regularised)
      : u.optimizer.kind == Kind::kAdam           ? adam_step(row, bias_correction(u.optimizer, updates), regularised)
      : u.optimizer.kind == Kind::kLamb           ? lamb_step(row, bias_correction(u.optimizer, updates), clipped)
                                                  : ftrl_step(row, 0.0F, clipped);
  columns.sync();  // all lanes have read the row's lifecycle
  if (!columns.first()) return;
  lifecycle[0] = after;
  lifecycle[1] = u.step;
  if (!(nonfinite == 0)) atomic_min(u.bad_row.data(), id);
}

// Updates a row whose values have type T.
template <class T, class C, class MeanAt>
GPUPS_INLINED_FN void update_values(C columns, UpdateRows const& u, std::uint32_t id, MeanAt mean) {
  T* const row = u.values.as<T>().row(id);
  if constexpr (std::is_same_v<T, float>) {
    update_columns(columns, u, id, FloatValues<C>{columns, row}, mean);
  } else {
    RoundingDraw const draw{philox_key(u.rounding_seed), *u.keys.row(id), u.step};
#ifdef __CUDACC__
    update_columns(columns, u, id, RoundedValues<C, T>{row, draw}, mean);
#else
    RoundingBits bits(draw);
    update_columns(columns, u, id, RoundedValues<C, T>{row, &bits}, mean);
#endif
  }
}

// Updates a row whose values have type T with a team of lanes. Does nothing for a row that waits for admission. Columns
// include the padding of floats.
template <class T, class MeanAt>
GPUPS_INLINED_FN void update_row_of(NativeLanes lanes, UpdateRows const& u, std::uint32_t id, MeanAt mean) {
#ifdef __CUDACC__
  update_values<T>(DeviceColumns{lanes}, u, id, mean);
#else
  static_cast<void>(lanes);
  row_stride(u.dim) < kLanes ? update_values<T>(HostColumns<Quad>{}, u, id, mean)
                             : update_values<T>(HostColumns<Vector>{}, u, id, mean);
#endif
}

#ifndef __CUDACC__
// Not inlined, so that the code for floats does not change.
template <class T, class MeanAt>
[[gnu::noinline]] void update_short_row(UpdateRows const& u, std::uint32_t id, MeanAt mean) {
  update_row_of<T>(HostLanes{}, u, id, mean);
}

// Updates a row of any data type.
template <class MeanAt>
inline void update_row(HostLanes lanes, UpdateRows const& u, std::uint32_t id, MeanAt mean) {
  if (u.values.type == DataType::kFloat) return update_row_of<float>(lanes, u, id, mean);
  u.values.type == DataType::kHalf ? update_short_row<Half>(u, id, mean) : update_short_row<BFloat16>(u, id, mean);
}
#endif

}  // namespace gpups::kernels
