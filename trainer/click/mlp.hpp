// SPDX-License-Identifier: Apache-2.0
// Fully connected layers, one after the other, with ReLUs between them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/click/click_model.hpp"

namespace gpups::trainer {

class Mlp {
 public:
  struct Options {
    std::string name;                      // of its parameters: "top" gives "top.0.weights"
    std::size_t inputs;                    // columns that it reads
    std::span<std::int64_t const> widths;  // of the hidden layers
    std::size_t outputs;
    bool relu_last = false;  // after the last layer too
    float last_bias = 0;     // where the last layer's begins
    float dropout = 0;       // of hidden units
    std::uint64_t seed = 0;  // of dropout
  };
  Mlp(Options const& options, Parameters& parameters, ScratchPlan& scratch);

  // in: (m, inputs) -> out: (m, outputs), of any stride. Queued on `stream`.
  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
               MatrixView<float const> in, MatrixView<float> out) const;
  // in, out: of forward(). out_gradient is changed. in_gradient: (m, inputs), or no data: not wanted; added to where
  // `accumulate`. Queued on `stream`.
  void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                MatrixView<float const> in, MatrixView<float const> out, MatrixView<float> out_gradient,
                LayerGradients const& gradients, MatrixView<float> in_gradient, bool accumulate) const;

 private:
  struct Layer {
    Parameter weights, bias;
    bool relu;
    Buffer out, gradient;  // of a hidden layer
  };
  void drop(Stream& stream, ClickMicrobatch const& batch, std::size_t layer, MatrixView<float> values) const;

  std::vector<Layer> layers_;
  float dropout_;
  std::uint64_t seed_;
};

}  // namespace gpups::trainer
