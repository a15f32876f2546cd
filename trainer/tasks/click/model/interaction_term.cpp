// SPDX-License-Identifier: Apache-2.0
// DLRM: the bottom layers compute a vector as wide as a row from the numbers. The top layers read this vector, and the
// dot products of all pairs of the vector and the rows of categories.
#include "kernels/base/assert.hpp"
#include "kernels/dense/interact_pairs.hpp"
#include "trainer/tasks/click/model/click_models.hpp"
#include "trainer/tasks/click/model/mlp.hpp"

namespace gpups::trainer {
namespace {

Mlp bottom_layers(TermContext const& context, std::size_t dim) {
  return Mlp({.name = "bottom",
              .inputs = context.features.numbers(),
              .widths = context.settings.bottom,
              .outputs = dim,
              .relu_last = true},
             context.parameters, context.scratch);
}

Mlp top_layers(TermContext const& context, std::size_t inputs) {
  return Mlp({.name = "top",
              .inputs = inputs,
              .widths = context.settings.top,
              .outputs = 1,
              .last_bias = context.take_base_logit(),
              .dropout = static_cast<float>(context.settings.dropout),
              .seed = context.seed},
             context.parameters, context.scratch);
}

// The output of the top layers.
class InteractionTerm : public ClickTerm {
 public:
  explicit InteractionTerm(TermContext const& context)
      : dim_(context.features.tables().front().dim),
        slots_(1 + context.features.categories()),
        columns_(kernels::interact_pairs_columns(slots_, dim_)),
        bottom_(bottom_layers(context, dim_)),
        top_(top_layers(context, columns_)),
        pairs_(context.scratch.add(columns_)),
        pairs_gradient_(context.scratch.add(columns_)) {}

  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
               MatrixView<float> out) const override {
    auto const pairs = scratch.matrix(pairs_, batch.blocks.rows());
    bottom_.forward(stream, batch, values, scratch, batch.numbers, head(batch.blocks));
    kernels::interact_pairs_forward(stream, {.rows = slots(batch.blocks), .slots = slots_, .dim = dim_, .out = pairs});
    top_.forward(stream, batch, values, scratch, pairs, out);
  }

  void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                MatrixView<float> logit_gradient, LayerGradients const& gradients, MatrixView<float> block_gradients,
                [[maybe_unused]] bool accumulate) const override {
    GPUPS_ASSERT(!accumulate);  // no other term of the model reads blocks
    auto const pairs = scratch.matrix(pairs_, batch.blocks.rows());
    auto const pairs_gradient = scratch.matrix(pairs_gradient_, batch.blocks.rows());
    top_.backward(stream, batch, values, scratch, pairs, {}, logit_gradient, gradients, pairs_gradient, false);
    kernels::interact_pairs_backward(stream, {.rows = slots(batch.blocks),
                                              .slots = slots_,
                                              .dim = dim_,
                                              .out_gradient = pairs_gradient,
                                              .rows_gradient = slots(block_gradients)});
    bottom_.backward(stream, batch, values, scratch, batch.numbers, head(batch.blocks), head(block_gradients),
                     gradients, {}, false);
  }
  bool reads_blocks() const override { return true; }

 private:
  template <class T>
  MatrixView<T> head(MatrixView<T> blocks) const {
    return {blocks.data(), blocks.rows(), dim_, blocks.stride(), blocks.device()};
  }
  template <class T>
  MatrixView<T> slots(MatrixView<T> blocks) const {
    return {blocks.data(), blocks.rows(), slots_ * row_stride(dim_), blocks.stride(), blocks.device()};
  }

  std::size_t dim_, slots_, columns_;
  Mlp bottom_, top_;
  Buffer pairs_, pairs_gradient_;
};

}  // namespace

std::unique_ptr<ClickTerm> make_interaction_term(TermContext const& context) {
  return std::make_unique<InteractionTerm>(context);
}

}  // namespace gpups::trainer
