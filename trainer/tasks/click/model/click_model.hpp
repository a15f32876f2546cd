// SPDX-License-Identifier: Apache-2.0
// A click-through model: a list of terms whose sum is the logit of a click.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/dense/product.hpp"
#include "trainer/config/config.hpp"
#include "trainer/dense/dense_gradient_reducer.hpp"
#include "trainer/dense/parameters.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/features.hpp"
#include "trainer/tasks/click/model/scratch.hpp"

namespace gpups::trainer {

// The inputs of a microbatch of m samples.
struct ClickMicrobatch {
  MatrixView<float const> numbers;  // (m, numbers); no data if there are none
  MatrixView<float> blocks;         // (m, width): rows of all categories in their slots; terms may write the head
  MatrixView<float const> weights;  // (m, 1): sums of the linear part's weights
  kernels::ProductPrecision precision = kernels::ProductPrecision::kFp32;
  bool training = false;  // false: without dropout
  Clock clock{};
  View<std::uint32_t const> sample_numbers;  // (m): numbers in the global batch
};

// One term of the logit.
class ClickTerm {
 public:
  virtual ~ClickTerm() = default;

  // Writes the term of each sample to `out`, (m, 1) of any stride. Keeps in `scratch` what backward() needs. values: of
  // all parameters. Queued on `stream`.
  virtual void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                       MatrixView<float> out) const = 0;

  // Computes gradients from that of the logit, (m, 1) of stride 1. Writes the gradients of the term's parameters to
  // `gradients`, and marks each as ready once it is queued. Writes the gradient of the blocks to `block_gradients`,
  // (m, width), or adds it if `accumulate`. Queued on `stream`.
  virtual void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                        MatrixView<float> logit_gradient, LayerGradients const& gradients,
                        MatrixView<float> block_gradients, bool accumulate) const = 0;

  // Whether the term reads the blocks; otherwise backward() does not write to block_gradients.
  virtual bool reads_blocks() const = 0;
};

// What a term is constructed from. A term adds its parameters, and the scratch memory that it needs.
struct TermContext {
  Features const& features;
  ClickSettings const& settings;
  std::uint64_t seed;
  Parameters& parameters;
  ScratchPlan& scratch;
  float& base_logit;  // initial value of the logit; the first term with a bias takes it

  // Returns the initial value of a bias: base_logit in the first call, then 0.
  float take_base_logit() const { return std::exchange(base_logit, 0.0F); }
};

// The features, parameters and terms of a model.
class ClickModel {
 public:
  // Throws Error if the configuration does not fit the layout.
  ClickModel(Layout const& layout, Config const& config, SampleStatistics const& statistics = {});
  ClickModel(ClickModel const&) = delete;
  ClickModel& operator=(ClickModel const&) = delete;

  Features const& features() const { return features_; }
  Features& features() { return features_; }
  Parameters const& parameters() const { return parameters_; }
  kernels::ProductPrecision precision() const { return precision_; }

  // Writes the terms of each sample to `terms`, (m, terms()). Queued on `stream`.
  std::size_t terms() const { return terms_.size(); }
  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
               MatrixView<float> terms) const;
  // Computes the gradients of parameters and blocks. gradients: of all parameters; their padding is zero. Queued on
  // `stream`. REQUIRES: forward() was called with the same scratch.
  void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                MatrixView<float> logit_gradient, LayerGradients const& gradients,
                MatrixView<float> block_gradients) const;

  // Scratch memory for forward(), backward() and the two buffers below. Any thread.
  ScratchPool& scratch() const { return pool_; }
  std::vector<std::size_t> const& scratch_columns() const { return plan_.columns(); }
  // The buffers of a scratch that have the terms and the gradient of the logit.
  Buffer terms_buffer() const { return terms_buffer_; }
  Buffer gradient_buffer() const { return gradient_buffer_; }

 private:
  Features features_;
  kernels::ProductPrecision precision_;  // of all layers
  Parameters parameters_;
  ScratchPlan plan_;
  std::vector<std::unique_ptr<ClickTerm>> terms_;
  Buffer terms_buffer_{}, gradient_buffer_{};
  mutable ScratchPool pool_{plan_};
};

}  // namespace gpups::trainer
