// SPDX-License-Identifier: Apache-2.0
// The matrix products of a training step and nothing else, by oneDNN's own sgemm: what a step cannot be faster than.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/parameters.hpp"

namespace gpups::bench {

// A fully connected layer's products of one microbatch: forward, for its weights, and for its inputs.
struct LayerShape {
  std::size_t samples, inputs, outputs;
  bool input_gradient;  // not of a layer on the numbers, which nothing is learnt of
};

// Of DLRM's layers, for microbatches of `samples`.
std::vector<LayerShape> layer_shapes(trainer::Parameters const& parameters, std::size_t samples);

// Multiplications with an addition, of one microbatch.
double products_of(std::vector<LayerShape> const& shapes);

// Those of `microbatches`, by `threads` side by side, each with its share. Strides are the trainer's.
struct ProductsTime {
  double seconds;
  double core_seconds;  // of all threads
};
ProductsTime time_products(std::vector<LayerShape> const& shapes, std::size_t microbatches, int threads);

}  // namespace gpups::bench
