// SPDX-License-Identifier: Apache-2.0
// The matrix products of a training step without anything else, with oneDNN's sgemm: a lower bound of the time of a
// step.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/dense/parameters.hpp"

namespace gpups::bench {

// A fully connected layer, whose products for one microbatch are: the forward pass, the gradient of its weights, and
// the gradient of its inputs.
struct LayerShape {
  std::size_t samples, inputs, outputs;
  bool input_gradient;  // false for the first layer, whose inputs are numbers that are not learned
};

// Returns the layers of DLRM, for microbatches of `samples`.
std::vector<LayerShape> layer_shapes(trainer::Parameters const& parameters, std::size_t samples);

// Returns the number of multiply-adds for one microbatch.
double products_of(std::vector<LayerShape> const& shapes);

// The time of the products of `microbatches`, which `threads` compute in parallel, each its share. Matrices have the
// same strides as in the trainer.
struct ProductsTime {
  double seconds;
  double core_seconds;  // of all threads
};
ProductsTime time_products(std::vector<LayerShape> const& shapes, std::size_t microbatches, int threads);

}  // namespace gpups::bench
