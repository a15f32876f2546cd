// SPDX-License-Identifier: Apache-2.0
// Terms that read the whole block of a sample: fully connected layers, the cross network of DCN-v2, and the pairs of a
// factorization machine.
#include <fmt/format.h>

#include <cmath>

#include "kernels/dense/interactions.hpp"
#include "kernels/dense/linear.hpp"
#include "trainer/tasks/click/model/click_models.hpp"
#include "trainer/tasks/click/model/mlp.hpp"

namespace gpups::trainer {
namespace {

// Computes the gradients of a layer without a ReLU.
void linear_backward(Stream& stream, Parameter const& weights, Parameter const& bias, View<float const> values,
                     MatrixView<float const> in, MatrixView<float> out_gradient, LayerGradients const& gradients,
                     MatrixView<float> in_gradient, bool accumulate, kernels::ProductPrecision precision) {
  kernels::linear_backward(stream, {.in = in,
                                    .weights = weights.matrix(values),
                                    .out = {},
                                    .relu = false,
                                    .out_gradient = out_gradient,
                                    .in_gradient = in_gradient,
                                    .accumulate = accumulate,
                                    .weights_gradient = gradients.matrix(weights),
                                    .bias_gradient = gradients.vector(bias),
                                    .precision = precision});
  gradients.mark_ready(stream, weights, bias);
}

// Fully connected layers on the block.
class DeepTerm : public ClickTerm {
 public:
  explicit DeepTerm(TermContext const& context)
      : mlp_({.name = "top",
              .inputs = context.features.width(),
              .widths = context.settings.top,
              .outputs = 1,
              .last_bias = context.take_base_logit(),
              .dropout = static_cast<float>(context.settings.dropout),
              .seed = context.seed},
             context.parameters, context.scratch) {}

  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
               MatrixView<float> out) const override {
    mlp_.forward(stream, batch, values, scratch, batch.blocks, out);
  }
  void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                MatrixView<float> logit_gradient, LayerGradients const& gradients, MatrixView<float> block_gradients,
                bool accumulate) const override {
    mlp_.backward(stream, batch, values, scratch, batch.blocks, {}, logit_gradient, gradients, block_gradients,
                  accumulate);
  }
  bool reads_blocks() const override { return true; }

 private:
  Mlp mlp_;
};

// The cross network: x_{l+1} = x_0 * (W_l x_l + b_l) + x_l. The term is a linear layer on the last x.
class CrossTerm : public ClickTerm {
 public:
  explicit CrossTerm(TermContext const& context) : width_(context.features.width()) {
    float const scale = std::sqrt(3.0F / static_cast<float>(width_));
    for (std::int64_t l = 0; l < context.settings.cross_layers; ++l) {
      layers_.push_back({.weights = context.parameters.add(fmt::format("cross.{}.weights", l), width_, width_, scale),
                         .bias = context.parameters.add(fmt::format("cross.{}.bias", l), 1, width_, 0),
                         .product = context.scratch.add(width_),
                         .out = context.scratch.add(width_)});
    }
    weights_ = context.parameters.add("cross.last.weights", 1, width_, scale);
    bias_ = context.parameters.add("cross.last.bias", 1, 1, 0, context.take_base_logit());
    gradient_ = context.scratch.add(width_);
  }

  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
               MatrixView<float> out) const override {
    std::size_t const m = batch.blocks.rows();
    MatrixView<float const> x = batch.blocks;
    for (Layer const& layer : layers_) {
      auto const product = scratch.matrix(layer.product, m), next = scratch.matrix(layer.out, m);
      kernels::linear_forward(stream, {.in = x,
                                       .weights = layer.weights.matrix(values),
                                       .bias = layer.bias.vector(values),
                                       .relu = false,
                                       .out = product,
                                       .precision = batch.precision});
      kernels::cross_forward(stream, {.x0 = batch.blocks, .u = product, .x = x, .out = next});
      x = next;
    }
    kernels::linear_forward(stream, {.in = x,
                                     .weights = weights_.matrix(values),
                                     .bias = bias_.vector(values),
                                     .relu = false,
                                     .out = out,
                                     .precision = batch.precision});
  }

  void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                MatrixView<float> logit_gradient, LayerGradients const& gradients, MatrixView<float> block_gradients,
                bool accumulate) const override {
    std::size_t const m = batch.blocks.rows();
    MatrixView<float> const gradient = scratch.matrix(gradient_, m);
    if (!accumulate) memory::fill_bytes(stream, block_gradients.data(), 0, block_gradients.flat().bytes());
    linear_backward(stream, weights_, bias_, values, input_of(layers_.size(), batch, scratch), logit_gradient,
                    gradients, gradient, false, batch.precision);
    for (std::size_t l = layers_.size(); l-- > 0;) {
      Layer const& layer = layers_[l];
      MatrixView<float> const product = scratch.matrix(layer.product, m);
      kernels::cross_backward(stream, {.x0 = batch.blocks,
                                       .u = product,
                                       .out_gradient = gradient,
                                       .u_gradient = product,
                                       .x0_gradient = block_gradients,
                                       .x_gradient = gradient});
      linear_backward(stream, layer.weights, layer.bias, values, input_of(l, batch, scratch), product, gradients,
                      gradient, true, batch.precision);
    }
    kernels::copy_columns(stream, {.from = gradient, .to = block_gradients, .add = true});  // the first x is the block
  }
  bool reads_blocks() const override { return true; }

 private:
  struct Layer {
    Parameter weights, bias;
    Buffer product, out;
  };
  MatrixView<float const> input_of(std::size_t layer, ClickMicrobatch const& batch, Scratch const& scratch) const {
    return layer == 0 ? batch.blocks : scratch.matrix(layers_[layer - 1].out, batch.blocks.rows());
  }

  std::size_t width_;
  std::vector<Layer> layers_;
  Parameter weights_, bias_;
  Buffer gradient_{};
};

// The sum of the dot products of all pairs of rows.
class FactorizationTerm : public ClickTerm {
 public:
  explicit FactorizationTerm(TermContext const& context)
      : dim_(context.features.tables().front().dim),
        first_slot_(context.features.first_slot()),
        slots_(first_slot_ + context.features.categories()),
        out_(context.scratch.add(1)) {}

  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const>, Scratch const& scratch,
               MatrixView<float> out) const override {
    auto const pairs = scratch.column(out_, batch.blocks.rows());
    kernels::factorization_forward(
        stream, {.rows = slots(batch.blocks), .first_slot = first_slot_, .slots = slots_, .dim = dim_, .out = pairs});
    kernels::copy_columns(
        stream, {.from = MatrixView<float const>{pairs.data(), pairs.size(), 1, 1, pairs.device()}, .to = out});
  }
  void backward(Stream& stream, ClickMicrobatch const& batch, View<float const>, Scratch const&,
                MatrixView<float> logit_gradient, LayerGradients const&, MatrixView<float> block_gradients,
                bool accumulate) const override {
    if (!accumulate) memory::fill_bytes(stream, block_gradients.data(), 0, block_gradients.flat().bytes());
    kernels::factorization_backward(stream, {.rows = slots(batch.blocks),
                                             .first_slot = first_slot_,
                                             .slots = slots_,
                                             .dim = dim_,
                                             .out_gradient = logit_gradient.flat(),
                                             .rows_gradient = slots(block_gradients)});
  }
  bool reads_blocks() const override { return true; }

 private:
  template <class T>
  MatrixView<T> slots(MatrixView<T> blocks) const {
    return {blocks.data(), blocks.rows(), slots_ * row_stride(dim_), blocks.stride(), blocks.device()};
  }

  std::size_t dim_, first_slot_, slots_;
  Buffer out_;
};

}  // namespace

std::unique_ptr<ClickTerm> make_deep_term(TermContext const& context) { return std::make_unique<DeepTerm>(context); }
std::unique_ptr<ClickTerm> make_cross_term(TermContext const& context) { return std::make_unique<CrossTerm>(context); }
std::unique_ptr<ClickTerm> make_factorization_term(TermContext const& context) {
  return std::make_unique<FactorizationTerm>(context);
}

}  // namespace gpups::trainer
