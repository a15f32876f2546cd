// SPDX-License-Identifier: Apache-2.0
// Presents a part of the dense parameters as a row, to which the formulas of the optimizers for rows apply. Only for
// update_dense.cu.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/base/atomic.hpp"
#include "kernels/dense/update_dense.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/update/optimizer_steps.hpp"
#include "kernels/update/row_columns.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
using DenseColumns = DeviceColumns;
__device__ inline DenseColumns dense_columns(DeviceLanes lanes) { return {lanes}; }
#else
using DenseColumns = HostColumns<Vector>;
inline DenseColumns dense_columns(HostLanes) { return {}; }
#endif

// The values that are the same for all parameters of a step.
struct DenseStep {
  double unit;  // a gradient is its sum times this
  float decay;  // a value is multiplied by this before the step
  float rate;
  float momentum;
  float inverse_change;  // FTRL: 1 / rate of this step minus 1 / rate of the step before
  BiasCorrection correction;
  Optimizer optimizer;
};

// Returns 1 / rate - 1 / rate_before. 1 / rate_before counts as 0 in the first step; the result is 0 if one of the
// rates is 0.
inline float inverse_change(UpdateDense const& u) {
  if (!(u.rate > 0)) return 0;
  if (u.step == 1) return 1 / u.rate;
  return u.rate_before > 0 ? 1 / u.rate - 1 / u.rate_before : 0.0F;
}

// Returns the values of a step.
inline DenseStep dense_step(UpdateDense const& u) {
  DenseOptimizer const& o = u.optimizer;
  bool const lamb = o.kind == DenseOptimizer::Kind::kLamb;
  Optimizer const formula{.epsilon = o.epsilon,
                          .l2 = lamb ? o.weight_decay : o.l2,
                          .beta1 = o.beta1,
                          .beta2 = o.beta2,
                          .l1 = o.l1,
                          .beta = o.beta};
  return {.unit = std::ldexp(u.scale, u.grid_log2),
          .decay = lamb ? 1.0F : 1.0F - u.rate * o.weight_decay,
          .rate = u.rate,
          .momentum = o.momentum,
          .inverse_change = inverse_change(u),
          .correction = bias_correction(formula, static_cast<std::uint64_t>(u.step)),
          .optimizer = formula};
}

// The parameters that one team of lanes updates, at most kDensePart.
struct DensePart {
  std::size_t first, count;
};
GPUPS_FN inline DensePart part_of(std::size_t first, std::size_t end) {
  return {first, end - first < kDensePart ? end - first : kDensePart};
}
GPUPS_FN inline DensePart part_of_unit(DenseUnits::Ref const& units, std::size_t part) {
  std::uint32_t const unit = units.unit_of[part];
  return part_of(units.begins[unit] + (part - units.first_parts[unit]) * kDensePart, units.begins[unit + 1]);
}

// The values of a part, multiplied by `decay` (weight decay) when a formula reads them.
struct DecayedValues {
  DenseColumns columns;
  float* row;
  float decay;

  GPUPS_FN auto get(std::size_t j) const { return decay * columns.get(row + j); }
  // Stores x. Returns NaN if x is not finite, else 0.
  template <class V>
  GPUPS_FN V put(std::size_t j, V x) const {
    columns.put(row + j, x);
    return 0.0F * x;
  }
};

// Returns the part as a row of an optimizer's formula. Formulas have the sums of squares of Adagrad and FTRL first;
// dense layers have them in the second array.
GPUPS_INLINED_FN RowStep<DenseColumns, DecayedValues> dense_row(NativeLanes lanes, UpdateDense const& u,
                                                                DenseStep const& step, DensePart part) {
  using Kind = DenseOptimizer::Kind;
  float* const first = u.first.empty() ? nullptr : u.first.data() + part.first;
  float* const second = u.second.empty() ? nullptr : u.second.data() + part.first;
  bool const sums_first = u.optimizer.kind == Kind::kAdagrad || u.optimizer.kind == Kind::kFtrl;
  auto const columns = dense_columns(lanes);
  return {.columns = columns,
          .width = part.count,
          .dim = part.count,
          .value = {columns, u.values.data() + part.first, step.decay},
          .state = sums_first ? second : first,
          .more_state = sums_first ? first : second,
          .rate = step.rate,
          .optimizer = step.optimizer};
}

// The gradient of the mean loss of the step, in the columns of a part.
struct DenseGradient {
  std::int64_t const* sums;
  double unit;
  GPUPS_INLINED_FN auto operator()(std::size_t j) const { return scaled<DenseColumns::Value>(sums + j, unit); }
};
GPUPS_FN inline DenseGradient dense_gradient(UpdateDense const& u, DenseStep const& step, DensePart part) {
  return {u.sums.data() + part.first, step.unit};
}

GPUPS_FN inline bool is_finite(float x) { return x - x == 0; }
GPUPS_FN inline bool is_bad(UpdateDense const& u, std::size_t j) {
  return !is_finite(u.values[j]) || !(u.first.empty() || is_finite(u.first[j])) ||
         !(u.second.empty() || is_finite(u.second[j]));
}
// Records the first parameter of the part whose new value or state is not finite. nonfinite: 0 if there is none, else
// NaN.
GPUPS_FN inline void report_nonfinite(NativeLanes lanes, UpdateDense const& u, DensePart part, float nonfinite) {
  if (nonfinite == 0) return;
  lanes.sync();
  for (std::size_t j = part.first; lanes.first() && j < part.first + part.count; ++j) {
    if (is_bad(u, j)) atomic_min(u.bad_element.data(), static_cast<std::uint32_t>(j));
  }
}

}  // namespace gpups::kernels
