// SPDX-License-Identifier: Apache-2.0
// One step of an optimizer on dense parameters, all of which change in every step. The exact sum is converted to a
// float once. Moves 16 bytes per parameter, and 8 more for each array of state; LAMB moves another 12, since it reads
// values and state twice.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/dense/dense_units.hpp"

namespace gpups::kernels {

// An optimizer of dense layers: how the gradient g of a step changes a parameter. The formulas are those of Optimizer
// (for rows), with an update in every step.
//
// Weight decay is decoupled from the gradient (Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019):
// first value -= rate * weight_decay * value. LAMB adds weight decay to u instead. FTRL has l2 instead, because it
// recomputes values in each step.
struct DenseOptimizer {
  enum class Kind {
    kSgd,      // v = momentum * v + g, value -= rate * v
    kAdagrad,  // s += g * g, value -= rate * g / (sqrt(s) + epsilon)
    kAdam,     // Kingma, Ba: "Adam", ICLR 2015, algorithm 1, with bias-corrected moments m' and v'
    // You et al.: "Large batch optimization for deep learning", ICLR 2020: u = m' / (sqrt(v') + epsilon) + weight_decay
    // * value, value -= rate * (|value| / |u|) * u. The norms are those of a unit: the weight matrix of a layer is one
    // unit, its bias another. The quotient of the norms is 1 if one of them is 0.
    kLamb,
    // FTRL-proximal (McMahan et al., KDD 2013): n += g * g, z += g - (c - c before) * value, where c is (beta +
    // sqrt(n)) / rate, and 0 before the first step; value = 0 if |z| <= l1, else -(z - sign(z) * l1) / (c + l2). So the
    // first step starts from the initial values, which random layers need, and values do not change when only the rate
    // changes. A step whose rate is 0 changes nothing.
    kFtrl,
  };

  Kind kind = Kind::kAdam;
  float learning_rate = 1e-3F;
  float momentum = 0.0F;             // kSgd; 0: no momentum and no state
  float beta1 = 0.9F;                // kAdam, kLamb
  float beta2 = 0.999F;              // kAdam, kLamb
  float epsilon = 1e-8F;             // kAdagrad, kAdam, kLamb; more than 0
  float initial_accumulator = 0.0F;  // kAdagrad, kFtrl: the initial s or n
  float weight_decay = 0.0F;         // 0: off; must be 0 for kFtrl
  float l1 = 0.0F;                   // kFtrl
  float l2 = 0.0F;                   // kFtrl
  float beta = 1.0F;                 // kFtrl; more than 0, otherwise values without gradients would start at 0
};

// Return whether an optimizer has a first or a second array of state. The first is v of SGD, z of FTRL, or a first
// moment; the second is s of Adagrad, n of FTRL, or a second moment.
constexpr bool has_first(DenseOptimizer const& optimizer) {
  return optimizer.kind == DenseOptimizer::Kind::kSgd ? optimizer.momentum != 0
                                                      : optimizer.kind != DenseOptimizer::Kind::kAdagrad;
}
constexpr bool has_second(DenseOptimizer const& optimizer) { return optimizer.kind != DenseOptimizer::Kind::kSgd; }

// Sets the state to its values before the first step.
struct InitDenseState {
  DenseOptimizer optimizer;
  View<float> first;   // (n); empty if the optimizer has none
  View<float> second;  // (n); empty if the optimizer has none
};
void init_dense_state(Stream& stream, InitDenseState const& arguments);

// Applies one step. If a new value or state is not finite, bad_element is set; all elements are written nevertheless.
struct UpdateDense {
  View<std::int64_t const> sums;  // (n); n is a multiple of kDenseAlignment
  int grid_log2;
  double scale;  // g = float(sum * 2^grid_log2 * scale): 1 / samples of the step
  DenseOptimizer optimizer;
  float rate;          // the learning rate of this step: learning_rate times the factor of the schedule
  float rate_before;   // the rate of the step before; only kFtrl reads it, not in the first step
  std::int64_t step;   // 1 for the first step
  View<float> values;  // (n)
  View<float> first;   // (n); empty if the optimizer has none
  View<float> second;  // (n); empty if the optimizer has none
  // (1), kNoRow before the call. The call sets it to the smallest parameter whose new value or state is not finite.
  View<std::uint32_t> bad_element;
  DenseUnits::Ref units{};  // kLamb: units that cover all n parameters
};
void update_dense(Stream& stream, UpdateDense const& arguments);

}  // namespace gpups::kernels
