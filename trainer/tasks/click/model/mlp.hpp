// SPDX-License-Identifier: Apache-2.0
// Fully connected layers, one after the other, with ReLUs between them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/tasks/click/model/click_model.hpp"

namespace gpups::trainer {

// The layers, whose parameters and scratch memory belong to a model.
class Mlp {
 public:
  struct Options {
    std::string name;                      // of its parameters: "top" gives "top.0.weights"
    std::size_t inputs;                    // columns of the input
    std::span<std::int64_t const> widths;  // of the hidden layers
    std::size_t outputs;
    bool relu_last = false;  // whether the last layer has a ReLU too
    float last_bias = 0;     // initial bias of the last layer
    float dropout = 0;       // rate, of hidden units
    std::uint64_t seed = 0;  // of dropout
  };
  Mlp(Options const& options, Parameters& parameters, ScratchPlan& scratch);

  // Computes `out`, (m, outputs) of any stride, from `in`, (m, inputs). Queued on `stream`.
  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
               MatrixView<float const> in, MatrixView<float> out) const;
  // Computes the gradients of the layers and of `in`. in, out: as in forward(). out_gradient: overwritten. in_gradient:
  // (m, inputs), or without data if it is not needed; added to if `accumulate`. Queued on `stream`.
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
