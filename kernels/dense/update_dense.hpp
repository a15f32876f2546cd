// SPDX-License-Identifier: Apache-2.0
// One step of the optimizer on dense parameters, all of which change in every step. The exact sum becomes a float once.
// Moves 16 bytes per parameter, and 8 more for each array of state.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// How the gradient g of a step changes a parameter. Weight decay is decoupled from the gradient for all kinds
// (Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019): first value -= rate * weight_decay * value.
struct DenseOptimizer {
  enum class Kind {
    kSgd,      // v = momentum * v + g, value -= rate * v
    kAdagrad,  // s += g * g, value -= rate * g / (sqrt(s) + epsilon)
    kAdam,     // Kingma, Ba: "Adam", ICLR 2015, algorithm 1, with the moments' bias corrected
  };

  Kind kind = Kind::kAdam;
  float learning_rate = 1e-3F;
  float momentum = 0.0F;             // kSgd; 0: off, and without state
  float beta1 = 0.9F;                // kAdam
  float beta2 = 0.999F;              // kAdam
  float epsilon = 1e-8F;             // kAdagrad, kAdam; more than 0
  float initial_accumulator = 0.0F;  // kAdagrad: what s is before the first step
  float weight_decay = 0.0F;         // 0: off
};

// Which arrays of state an optimizer has: `first` is v of SGD or the first moment of Adam, `second` is s of Adagrad or
// the second moment of Adam.
constexpr bool has_first(DenseOptimizer const& optimizer) {
  return optimizer.kind == DenseOptimizer::Kind::kAdam ||
         (optimizer.kind == DenseOptimizer::Kind::kSgd && optimizer.momentum != 0);
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
  View<std::int64_t const> sums;  // (n)
  int grid_log2;
  double scale;  // g = float(sum * 2^grid_log2 * scale): 1 / samples of the step
  DenseOptimizer optimizer;
  float rate;          // the learning rate of this step: learning_rate times a schedule's factor
  std::int64_t step;   // 1 for the first
  View<float> values;  // (n)
  View<float> first;   // (n); empty where there is none
  View<float> second;  // (n); empty where there is none
  // (1), kNoRow before; after it the smallest parameter whose new value or state is not finite, if there is any: all
  // have been written all the same.
  View<std::uint32_t> fault;
};
void update_dense(Stream& stream, UpdateDense const& arguments);

}  // namespace gpups::kernels
