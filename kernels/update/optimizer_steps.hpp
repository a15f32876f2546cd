// SPDX-License-Identifier: Apache-2.0
// The step of each optimizer for a row, or for a part of dense layers (see Optimizer and DenseOptimizer for the
// formulas). A step returns 0, or NaN if a new value or state is not finite.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/update/row_columns.hpp"
#include "kernels/update/row_values.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups::kernels {

// A row as a team of lanes processes it, and the parameters of the step. gradient(j) below returns the mean gradient of
// the columns from j on, clipped. It is 0 in the padding, so zeros are written there.
template <class C, class Values>
struct RowStep {
  C columns;
  std::size_t width, dim;
  Values value;
  float* state;
  float* more_state;  // for optimizers with two numbers of state per value
  float rate;
  Optimizer optimizer;
};

// Returns base^n, with the same bits on every machine.
GPUPS_ANY_FN inline double power(double base, std::uint64_t n) {
  double result = 1;
  for (; n > 0; n /= 2, base *= base) result *= n % 2 == 1 ? base : 1;
  return result;
}

// value -= rate * gradient
template <class C, class Values, class GradientAt>
GPUPS_INLINED_FN float descend(RowStep<C, Values> const& r, float rate, GradientAt gradient) {
  return r.columns.nonfinite(r.width, [=, value = r.value](std::size_t j) GPUPS_INLINED_BODY {
    return value.put(j, value.get(j) - rate * gradient(j));
  });
}

template <class C, class Values, class GradientAt>
GPUPS_INLINED_FN float sgd_step(RowStep<C, Values> const& r, GradientAt gradient) {
  return descend(r, r.rate, gradient);
}

// state: the sums s of squared gradients
template <class C, class Values, class GradientAt>
GPUPS_INLINED_FN float adagrad_step(RowStep<C, Values> const& r, GradientAt gradient) {
  return r.columns.nonfinite(r.width, [=, columns = r.columns, value = r.value, sums = r.state, rate = r.rate,
                                       epsilon = r.optimizer.epsilon](std::size_t j) GPUPS_INLINED_BODY {
    auto const g = gradient(j), s = columns.get(sums + j) + g * g;
    auto const x = value.get(j) - quotient(rate * g, square_root(s) + epsilon);
    columns.put(sums + j, s);
    return 0.0F * s + value.put(j, x);
  });
}

// state: one sum s for the row
template <class C, class Values, class GradientAt>
GPUPS_INLINED_FN float rowwise_adagrad_step(RowStep<C, Values> const& r, GradientAt gradient) {
  float const squares =
      r.columns.sum(r.width, [=](std::size_t j) GPUPS_INLINED_BODY { return gradient(j) * gradient(j); });
  float const s = *r.state + squares / static_cast<float>(r.dim);
  r.columns.sync();  // all lanes have read the state
  if (r.columns.first()) *r.state = s;
  return 0.0F * s + descend(r, quotient(r.rate, std::sqrt(s) + r.optimizer.epsilon), gradient);
}

// The factors that correct the bias of Adam's moments after a number of updates.
struct BiasCorrection {
  float first, second;
};
GPUPS_ANY_FN inline BiasCorrection bias_correction(Optimizer const& o, std::uint64_t updates) {
  return {static_cast<float>(1 / (1 - power(static_cast<double>(o.beta1), updates))),
          static_cast<float>(1 / (1 - power(static_cast<double>(o.beta2), updates)))};
}

// The moments of Adam. state: the first moments; more_state: the second moments.
template <class C>
struct AdamMoments {
  C columns;
  float *first, *second;
  float beta1, beta2, epsilon;
  BiasCorrection correction;

  template <class Values>
  GPUPS_FN AdamMoments(RowStep<C, Values> const& r, BiasCorrection corrected_by)
      : columns(r.columns),
        first(r.state),
        second(r.more_state),
        beta1(r.optimizer.beta1),
        beta2(r.optimizer.beta2),
        epsilon(r.optimizer.epsilon),
        correction(corrected_by) {}

  // The moments of some columns.
  template <class V>
  struct Pair {
    V first, second;
    // Returns NaN in columns whose moment is not finite, else 0.
    GPUPS_FN V nonfinite() const { return 0.0F * first + 0.0F * second; }
  };
  // Adds the gradient g to the moments of the columns from j on, and returns them.
  template <class V>
  GPUPS_FN Pair<V> add(std::size_t j, V g) const {
    V const m = beta1 * columns.get(first + j) + (1 - beta1) * g;
    V const v = beta2 * columns.get(second + j) + (1 - beta2) * (g * g);
    columns.put(first + j, m);
    columns.put(second + j, v);
    return {m, v};
  }
  // Returns the direction of the step for these moments.
  template <class V>
  GPUPS_FN V direction(Pair<V> const& at) const {
    return quotient(correction.first * at.first, square_root(correction.second * at.second) + epsilon);
  }
  // Returns the direction of the step in the columns from j on.
  GPUPS_FN auto direction(std::size_t j) const {
    return direction(Pair<typename C::Value>{columns.get(first + j), columns.get(second + j)});
  }
};

template <class C, class Values, class GradientAt>
GPUPS_INLINED_FN float adam_step(RowStep<C, Values> const& r, BiasCorrection correction, GradientAt gradient) {
  AdamMoments<C> const moments(r, correction);
  return r.columns.nonfinite(r.width, [=, value = r.value, rate = r.rate](std::size_t j) GPUPS_INLINED_BODY {
    auto const at = moments.add(j, gradient(j));
    return at.nonfinite() + value.put(j, value.get(j) - rate * moments.direction(at));
  });
}

// The update of LAMB: Adam's direction and the decay of values. LAMB first updates the moments, then computes the norms
// of update and values, and steps when the norms are complete: those of a layer are summed over many parts.
template <class C, class Values>
struct LambUpdate {
  AdamMoments<C> moments;
  Values value;
  float decay;

  GPUPS_FN LambUpdate(RowStep<C, Values> const& r, BiasCorrection correction)
      : moments(r, correction), value(r.value), decay(r.optimizer.l2) {}
  GPUPS_INLINED_FN auto operator()(std::size_t j) const { return moments.direction(j) + decay * value.get(j); }
  // Adds the gradient g to the moments of the columns from j on, whose update `held` then has. Returns NaN in columns
  // whose moment is not finite, else 0.
  template <class V, class Held>
  GPUPS_INLINED_FN V add(std::size_t j, V g, Held& held) const {
    auto const at = moments.add(j, g);
    held.put(j, moments.direction(at) + decay * value.get(j));
    return at.nonfinite();
  }
};
// Adds gradients to the moments. Returns 0, or NaN if a moment is not finite.
template <class C, class Values, class GradientAt, class Held>
GPUPS_INLINED_FN float add_moments(RowStep<C, Values> const& r, LambUpdate<C, Values> const& update, Held& held,
                                   GradientAt gradient) {
  return r.columns.nonfinite(r.width,
                             [=, &held](std::size_t j) GPUPS_INLINED_BODY { return update.add(j, gradient(j), held); });
}
struct LambSquares {
  float updates, values;
};
template <class C, class Values, class UpdateAt>
GPUPS_INLINED_FN LambSquares lamb_squares(RowStep<C, Values> const& r, UpdateAt update) {
  float const updates = r.columns.sum(r.width, [=](std::size_t j) GPUPS_INLINED_BODY { return update(j) * update(j); });
  float const values = r.columns.sum(
      r.width, [=, value = r.value](std::size_t j) GPUPS_INLINED_BODY { return value.get(j) * value.get(j); });
  return {updates, values};
}
GPUPS_FN inline float trust_ratio(float update_squares, float value_squares) {
  float const updates = std::sqrt(update_squares), values = std::sqrt(value_squares);
  return values > 0 && updates > 0 ? values / updates : 1.0F;
}

template <class C, class Values, class GradientAt>
GPUPS_INLINED_FN float lamb_step(RowStep<C, Values> const& r, BiasCorrection correction, GradientAt gradient) {
  LambUpdate<C, Values> const update(r, correction);
  auto held = r.columns.hold(update);
  float const nonfinite = add_moments(r, update, held, gradient);
  LambSquares const squares = lamb_squares(r, held);
  return nonfinite + descend(r, r.rate * trust_ratio(squares.updates, squares.values), held);
}

// state: the sums n; more_state: z. inverse_change: the growth of 1 / rate since the previous step. z is changed as if
// all steps had had the current rate, so that values stay the same. If z is 0, there was no step before, or the value
// is 0; then z is computed from the value.
template <class C, class Values, class GradientAt>
GPUPS_INLINED_FN float ftrl_step(RowStep<C, Values> const& r, float inverse_change, GradientAt gradient) {
  if (!(r.rate > 0)) return 0;  // a schedule can end at rate 0, at which z is not defined
  return r.columns.nonfinite(r.width, [=, columns = r.columns, value = r.value, sums = r.state, z_at = r.more_state,
                                       rate = r.rate, o = r.optimizer](std::size_t j) GPUPS_INLINED_BODY {
    auto const g = gradient(j), before = columns.get(sums + j), n = before + g * g;
    auto const z_before = columns.get(z_at + j);
    auto const change = where_zero(z_before, 1 / rate, inverse_change);
    auto const growth = (square_root(n) - square_root(before)) * (1 / rate) + (square_root(before) + o.beta) * change;
    auto const z = z_before + g - growth * value.get(j);
    auto const x = 0.0F - quotient(rate * beyond(z, o.l1), square_root(n) + (o.beta + rate * o.l2));
    columns.put(sums + j, n);
    columns.put(z_at + j, z);
    return 0.0F * n + 0.0F * z + value.put(j, x);
  });
}

}  // namespace gpups::kernels
