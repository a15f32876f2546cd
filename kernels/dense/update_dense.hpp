// SPDX-License-Identifier: Apache-2.0
// One step of the optimizer on dense parameters, all of which change in every step. The exact sum becomes a float once.
// Moves 16 bytes per parameter, and 8 more for each array of state; LAMB, which reads values and state twice, 12 more.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/dense/dense_units.hpp"

namespace gpups::kernels {

// How the gradient g of a step changes a parameter. The formulas are those of rows (Optimizer), for a parameter that
// has an update in every step.
//
// Weight decay is decoupled from the gradient (Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019):
// first value -= rate * weight_decay * value. LAMB has it in u instead, and FTRL, which makes values anew in each step,
// has l2.
struct DenseOptimizer {
  enum class Kind {
    kSgd,      // v = momentum * v + g, value -= rate * v
    kAdagrad,  // s += g * g, value -= rate * g / (sqrt(s) + epsilon)
    kAdam,     // Kingma, Ba: "Adam", ICLR 2015, algorithm 1, with the moments' bias corrected: m' and v'
    // You and others: "Large batch optimization for deep learning", ICLR 2020: u = m' / (sqrt(v') + epsilon) +
    // weight_decay * value, value -= rate * (|value| / |u|) * u. Norms are those of a unit: a layer's matrix of weights
    // is one, and its bias another. Their quotient is 1 where one of them is 0.
    kLamb,
    // FTRL-proximal (McMahan and others, KDD 2013): n += g * g, z += g - (c - c before) * value, where c is
    // (beta + sqrt(n)) / rate, and 0 before the first step; value = 0 where |z| <= l1, else -(z - sign(z) * l1) /
    // (c + l2). So a first step begins at the initial values, which random layers need, and values stay where they are
    // when the rate changes. A step whose rate is 0 changes nothing.
    kFtrl,
  };

  Kind kind = Kind::kAdam;
  float learning_rate = 1e-3F;
  float momentum = 0.0F;             // kSgd; 0: off, and without state
  float beta1 = 0.9F;                // kAdam, kLamb
  float beta2 = 0.999F;              // kAdam, kLamb
  float epsilon = 1e-8F;             // kAdagrad, kAdam, kLamb; more than 0
  float initial_accumulator = 0.0F;  // kAdagrad, kFtrl: what s or n is before the first step
  float weight_decay = 0.0F;         // 0: off, as it must be for kFtrl
  float l1 = 0.0F;                   // kFtrl
  float l2 = 0.0F;                   // kFtrl
  float beta = 1.0F;                 // kFtrl; more than 0, or values without gradients would begin at 0
};

// Which arrays of state an optimizer has: `first` is v of SGD, z of FTRL or a first moment, `second` is s of Adagrad, n
// of FTRL or a second moment.
constexpr bool has_first(DenseOptimizer const& optimizer) {
  return optimizer.kind == DenseOptimizer::Kind::kSgd ? optimizer.momentum != 0
                                                      : optimizer.kind != DenseOptimizer::Kind::kAdagrad;
}
constexpr bool has_second(DenseOptimizer const& optimizer) { return optimizer.kind != DenseOptimizer::Kind::kSgd; }

// Sets the state to what it is before the first step.
struct InitDenseState {
  DenseOptimizer optimizer;
  View<float> first;   // (n); empty where there is none
  View<float> second;  // (n); empty where there is none
};
void init_dense_state(Stream& stream, InitDenseState const& arguments);

struct UpdateDense {
  View<std::int64_t const> sums;  // (n); n is a multiple of kDenseAlignment
  int grid_log2;
  double scale;  // g = float(sum * 2^grid_log2 * scale): 1 / samples of the step
  DenseOptimizer optimizer;
  float rate;          // the learning rate of this step: learning_rate times a schedule's factor
  float rate_before;   // that of the step before; only kFtrl reads it, and not in the first step
  std::int64_t step;   // 1 for the first
  View<float> values;  // (n)
  View<float> first;   // (n); empty where there is none
  View<float> second;  // (n); empty where there is none
  // (1), kNoRow before; after it the smallest parameter whose new value or state is not finite, if there is any: all
  // have been written all the same.
  View<std::uint32_t> bad_element;
  DenseUnits::Ref units{};  // kLamb: of all n parameters
};
void update_dense(Stream& stream, UpdateDense const& arguments);

}  // namespace gpups::kernels
