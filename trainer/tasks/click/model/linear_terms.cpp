// SPDX-License-Identifier: Apache-2.0
// Linear terms: a weight for each value of a category, and a weight for each number.
#include <utility>

#include "kernels/dense/interactions.hpp"
#include "kernels/dense/linear.hpp"
#include "trainer/tasks/click/model/click_models.hpp"

namespace gpups::trainer {
namespace {

// The linear part: weights of the store, already summed over a sample. Their gradient is that of the logit, so there is
// nothing to compute.
class WideTerm : public ClickTerm {
 public:
  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const>, Scratch const&,
               MatrixView<float> out) const override {
    kernels::copy_columns(stream, {.from = batch.weights, .to = out});
  }
  void backward(Stream&, ClickMicrobatch const&, View<float const>, Scratch const&, MatrixView<float>,
                LayerGradients const&, MatrixView<float>, bool) const override {}
  bool reads_blocks() const override { return false; }
};

// A weight for each number, and a bias.
class NumbersTerm : public ClickTerm {
 public:
  explicit NumbersTerm(TermContext const& context)
      : weights_(context.parameters.add("numbers.weights", 1, context.features.numbers(), 0)),
        bias_(context.parameters.add("numbers.bias", 1, 1, 0, context.take_base_logit())) {}

  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const&,
               MatrixView<float> out) const override {
    kernels::linear_forward(stream, {.in = batch.numbers,
                                     .weights = weights_.matrix(values),
                                     .bias = bias_.vector(values),
                                     .relu = false,
                                     .out = out,
                                     .precision = batch.precision});
  }
  void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const&,
                MatrixView<float> logit_gradient, LayerGradients const& gradients, MatrixView<float>,
                bool) const override {
    kernels::linear_backward(stream, {.in = batch.numbers,
                                      .weights = weights_.matrix(values),
                                      .out = {},
                                      .relu = false,
                                      .out_gradient = logit_gradient,
                                      .in_gradient = {},
                                      .accumulate = false,
                                      .weights_gradient = gradients.matrix(weights_),
                                      .bias_gradient = gradients.vector(bias_),
                                      .precision = batch.precision});
    gradients.mark_ready(stream, weights_, bias_);
  }
  bool reads_blocks() const override { return false; }

 private:
  Parameter weights_, bias_;
};

}  // namespace

std::unique_ptr<ClickTerm> make_wide_term(TermContext const& context) {
  return context.features.categories() > 0 ? std::make_unique<WideTerm>() : nullptr;
}

std::unique_ptr<ClickTerm> make_numbers_term(TermContext const& context) {
  return std::make_unique<NumbersTerm>(context);
}

}  // namespace gpups::trainer
