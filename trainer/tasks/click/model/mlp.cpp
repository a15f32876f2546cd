// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/model/mlp.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/dense/dropout.hpp"
#include "kernels/dense/linear.hpp"

namespace gpups::trainer {

Mlp::Mlp(Options const& options, Parameters& parameters, ScratchPlan& scratch)
    : dropout_(options.dropout), seed_(options.seed) {
  std::size_t inputs = options.inputs;
  for (std::size_t l = 0; l <= options.widths.size(); ++l) {
    bool const last = l == options.widths.size();
    std::size_t const outputs = last ? options.outputs : static_cast<std::size_t>(options.widths[l]);
    // He et al.: "Delving deep into rectifiers", ICCV 2015.
    float const scale = std::sqrt(6.0F / static_cast<float>(inputs));
    layers_.push_back({.weights = parameters.add(fmt::format("{}.{}.weights", options.name, l), outputs, inputs, scale),
                       .bias = parameters.add(fmt::format("{}.{}.bias", options.name, l), 1, outputs, 0,
                                              last ? options.last_bias : 0),
                       .relu = !last || options.relu_last,
                       .out = last ? Buffer{} : scratch.add(outputs),
                       .gradient = last ? Buffer{} : scratch.add(outputs)});
    inputs = outputs;
  }
}

void Mlp::drop(Stream& stream, ClickMicrobatch const& batch, std::size_t layer, MatrixView<float> values) const {
  if (dropout_ == 0 || !batch.training) return;
  kernels::dropout(stream, {.values = values,
                            .rate = dropout_,
                            .seed = seed_,
                            .layer = static_cast<std::uint32_t>(layer),
                            .clock = batch.clock,
                            .sample_numbers = batch.sample_numbers});
}

void Mlp::forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                  MatrixView<float const> in, MatrixView<float> out) const {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    Layer const& layer = layers_[l];
    bool const last = l + 1 == layers_.size();
    MatrixView<float> const to = last ? out : scratch.matrix(layer.out, in.rows());
    kernels::linear_forward(stream, {.in = in,
                                     .weights = layer.weights.matrix(values),
                                     .bias = layer.bias.vector(values),
                                     .relu = layer.relu,
                                     .out = to,
                                     .precision = batch.precision});
    if (!last) drop(stream, batch, l, to);
    in = to;
  }
}

void Mlp::backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                   MatrixView<float const> in, MatrixView<float const> out, MatrixView<float> out_gradient,
                   LayerGradients const& gradients, MatrixView<float> in_gradient, bool accumulate) const {
  std::size_t const m = in.rows();
  for (std::size_t l = layers_.size(); l-- > 0;) {
    Layer const& layer = layers_[l];
    bool const last = l + 1 == layers_.size();
    MatrixView<float> const of_out = last ? out_gradient : scratch.matrix(layer.gradient, m);
    if (!last) drop(stream, batch, l, of_out);
    // An output that dropout set to zero looks like a zero of the ReLU; its gradient is already zero.
    kernels::linear_backward(stream, {.in = l == 0 ? in : scratch.matrix(layers_[l - 1].out, m),
                                      .weights = layer.weights.matrix(values),
                                      .out = last ? out : scratch.matrix(layer.out, m),
                                      .relu = layer.relu,
                                      .out_gradient = of_out,
                                      .in_gradient = l == 0 ? in_gradient : scratch.matrix(layers_[l - 1].gradient, m),
                                      .accumulate = l == 0 && accumulate,
                                      .weights_gradient = gradients.matrix(layer.weights),
                                      .bias_gradient = gradients.vector(layer.bias),
                                      .precision = batch.precision});
    gradients.mark_ready(stream, layer.weights, layer.bias);
  }
}

}  // namespace gpups::trainer
