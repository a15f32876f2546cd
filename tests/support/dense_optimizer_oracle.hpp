// SPDX-License-Identifier: Apache-2.0
// A simple implementation of the optimizers of dense parameters, in double.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/dense/update_dense.hpp"

namespace gpups::test {

// A parameter with its optimizer state.
struct DenseNumber {
  double value = 0;
  double first = 0, second = 0;

  DenseNumber() = default;
  DenseNumber(kernels::DenseOptimizer const& o, double initial) : value(initial) {
    using Kind = kernels::DenseOptimizer::Kind;
    if (o.kind == Kind::kAdagrad || o.kind == Kind::kFtrl) second = o.initial_accumulator;
  }
};

// The number of a step, from 1, with its learning rate and that of the step before.
struct DenseRates {
  double now, before;
  int step;
};

// Returns the reciprocal of FTRL's learning rate for a parameter.
inline double ftrl_curvature(kernels::DenseOptimizer const& o, double squares, double rate) {
  return (o.beta + std::sqrt(squares)) / rate;
}

// One step of FTRL: minimizes the linearized losses of all steps plus a quadratic penalty for distance from old values.
inline void ftrl_step(kernels::DenseOptimizer const& o, DenseRates const& rates, double g, DenseNumber& x) {
  if (rates.now == 0) return;
  double const before = rates.step == 1 ? 0 : ftrl_curvature(o, x.second, rates.before > 0 ? rates.before : rates.now);
  x.second += g * g;
  double const after = ftrl_curvature(o, x.second, rates.now);
  x.first += g - (after - before) * x.value;
  double const magnitude = std::max(0.0, std::abs(x.first) - static_cast<double>(o.l1)) / (after + o.l2);
  x.value = x.first > 0 ? -magnitude : magnitude;
}

// One step of a unit. LAMB uses the norms of a unit.
inline void dense_step(kernels::DenseOptimizer const& o, DenseRates const& rates, std::span<double const> gradient,
                       std::span<DenseNumber> unit) {
  using Kind = kernels::DenseOptimizer::Kind;
  double const rate = rates.now, decay = o.weight_decay;
  std::vector<double> update(unit.size());
  for (std::size_t j = 0; j < unit.size(); ++j) {
    DenseNumber& x = unit[j];
    double const g = gradient[j];
    if (o.kind != Kind::kLamb) x.value *= 1 - rate * decay;
    if (o.kind == Kind::kSgd) {
      update[j] = x.first = o.momentum * x.first + g;
    } else if (o.kind == Kind::kAdagrad) {
      x.second += g * g;
      update[j] = g / (std::sqrt(x.second) + o.epsilon);
    } else if (o.kind == Kind::kFtrl) {
      ftrl_step(o, rates, g, x);
    } else {
      x.first = o.beta1 * x.first + (1 - static_cast<double>(o.beta1)) * g;
      x.second = o.beta2 * x.second + (1 - static_cast<double>(o.beta2)) * g * g;
      double const mean = x.first / (1 - std::pow(static_cast<double>(o.beta1), rates.step));
      double const square = x.second / (1 - std::pow(static_cast<double>(o.beta2), rates.step));
      update[j] = mean / (std::sqrt(square) + o.epsilon) + (o.kind == Kind::kLamb ? decay * x.value : 0);
    }
  }
  double values = 0, updates = 0;
  for (DenseNumber const& x : unit) values += x.value * x.value;
  for (double u : update) updates += u * u;
  double const trust = o.kind == Kind::kLamb && values > 0 && updates > 0 ? std::sqrt(values / updates) : 1;
  for (std::size_t j = 0; j < unit.size(); ++j) unit[j].value -= rate * trust * update[j];
}

}  // namespace gpups::test
