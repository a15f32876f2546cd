// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/update_dense.hpp"

#include <cmath>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/dense/dense_part.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/update/optimizer_steps.hpp"

namespace gpups::kernels {

struct SgdStep {
  template <class Row, class GradientAt>
  GPUPS_INLINED_FN static float apply(Row const& r, DenseStep const&, GradientAt gradient) {
    return sgd_step(r, gradient);
  }
};
// State: v.
struct MomentumStep {
  template <class Row, class GradientAt>
  GPUPS_INLINED_FN static float apply(Row const& r, DenseStep const& step, GradientAt gradient) {
    return descend(r, r.rate,
                   [=, momentum = step.momentum, columns = r.columns, state = r.state](std::size_t j)
                       GPUPS_INLINED_BODY {
                         auto const v = momentum * columns.get(state + j) + gradient(j);
                         columns.put(state + j, v);
                         return v;
                       });
  }
};
struct AdagradStep {
  template <class Row, class GradientAt>
  GPUPS_INLINED_FN static float apply(Row const& r, DenseStep const&, GradientAt gradient) {
    return adagrad_step(r, gradient);
  }
};
struct AdamStep {
  template <class Row, class GradientAt>
  GPUPS_INLINED_FN static float apply(Row const& r, DenseStep const& step, GradientAt gradient) {
    return adam_step(r, step.correction, gradient);
  }
};
struct FtrlStep {
  template <class Row, class GradientAt>
  GPUPS_INLINED_FN static float apply(Row const& r, DenseStep const& step, GradientAt gradient) {
    return ftrl_step(r, step.inverse_change, gradient);
  }
};

template <class Step, Space S>
void update(Exec<S> ex, UpdateDense const& u) {
  DenseStep const step = dense_step(u);
  std::size_t const n = u.values.size();
  each_row(ex, (n + kDensePart - 1) / kDensePart, [u, step, n] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    DensePart const part = part_of(i * kDensePart, n);
    report_nonfinite(lanes, u, part, Step::apply(dense_row(lanes, u, step, part), step, dense_gradient(u, step, part)));
  });
}

// LAMB, first pass: updates the moments, and writes the sums of squares of each part.
template <Space S>
void add_moments(Exec<S> ex, UpdateDense const& u, DenseStep const& step) {
  each_row(ex, u.units.unit_of.size(), [u, step] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    DensePart const part = part_of_unit(u.units, i);
    auto const row = dense_row(lanes, u, step, part);
    LambUpdate const update(row, step.correction);
    auto held = row.columns.hold(update);
    float const nonfinite = kernels::add_moments(row, update, held, dense_gradient(u, step, part));
    LambSquares const squares = lamb_squares(row, held);
    if (lanes.first()) {
      u.units.squares[2 * i] = squares.updates;
      u.units.squares[2 * i + 1] = squares.values;
    }
    report_nonfinite(lanes, u, part, nonfinite + 0.0F * squares.values);
  });
}

// LAMB, second pass: computes the trust ratio of each unit. After a non-finite value the ratio is 0, so that
// bad_element does not change to another parameter of the unit.
template <Space S>
void find_trust(Exec<S> ex, UpdateDense const& u) {
  each_row(ex, u.units.trust.size(), [u] GPUPS_FN(std::size_t unit, NativeLanes lanes) {
    std::size_t const first = u.units.first_parts[unit], count = u.units.first_parts[unit + 1] - first;
    float const* const squares = u.units.squares.data() + 2 * first;
    float const updates = lanes.sum(count, [squares](std::size_t k) { return squares[2 * k]; });
    float const values = lanes.sum(count, [squares](std::size_t k) { return squares[2 * k + 1]; });
    if (lanes.first()) u.units.trust[unit] = u.bad_element[0] == kNoRow ? trust_ratio(updates, values) : 0.0F;
  });
}

// LAMB, third pass: changes the values.
template <Space S>
void step_with_trust(Exec<S> ex, UpdateDense const& u, DenseStep const& step) {
  each_row(ex, u.units.unit_of.size(), [u, step] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    DensePart const part = part_of_unit(u.units, i);
    auto const row = dense_row(lanes, u, step, part);
    float const rate = row.rate * u.units.trust[u.units.unit_of[i]];
    report_nonfinite(lanes, u, part, descend(row, rate, LambUpdate(row, step.correction)));
  });
}

template <Space S>
void update_lamb(Exec<S> ex, UpdateDense const& u) {
  DenseStep const step = dense_step(u);
  add_moments(ex, u, step);
  find_trust(ex, u);
  step_with_trust(ex, u, step);
}

template <Space S>
void run(Exec<S> ex, UpdateDense const& u) {
  using Kind = DenseOptimizer::Kind;
  [[maybe_unused]] std::size_t const n = u.values.size();
  GPUPS_ASSERT(u.sums.size() == n && n % kDenseAlignment == 0 && u.bad_element.size() == 1 && u.step >= 1);
  GPUPS_ASSERT(u.first.size() == (has_first(u.optimizer) ? n : 0));
  GPUPS_ASSERT(u.second.size() == (has_second(u.optimizer) ? n : 0));
  GPUPS_ASSERT(u.optimizer.kind != Kind::kFtrl || (u.optimizer.weight_decay == 0 && u.optimizer.beta > 0));
  switch (u.optimizer.kind) {
    case Kind::kSgd:
      return has_first(u.optimizer) ? update<MomentumStep>(ex, u) : update<SgdStep>(ex, u);
    case Kind::kAdagrad:
      return update<AdagradStep>(ex, u);
    case Kind::kAdam:
      return update<AdamStep>(ex, u);
    case Kind::kLamb:
      return update_lamb(ex, u);
    case Kind::kFtrl:
      return update<FtrlStep>(ex, u);
  }
}

template <Space S>
void run(Exec<S> ex, InitDenseState const& u) {
  using Kind = DenseOptimizer::Kind;
  bool const accumulates = u.optimizer.kind == Kind::kAdagrad || u.optimizer.kind == Kind::kFtrl;
  float const accumulator = accumulates ? u.optimizer.initial_accumulator : 0.0F;
  each(ex, u.first.size(), [u] GPUPS_FN(std::size_t j) { u.first[j] = 0.0F; });
  each(ex, u.second.size(), [u, accumulator] GPUPS_FN(std::size_t j) { u.second[j] = accumulator; });
}

GPUPS_KERNEL(update_dense, UpdateDense)
GPUPS_KERNEL(init_dense_state, InitDenseState)

}  // namespace gpups::kernels
