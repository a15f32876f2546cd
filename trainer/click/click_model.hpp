// SPDX-License-Identifier: Apache-2.0
// What predicts clicks: a model is a list of terms, whose sum is the logit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/click/features.hpp"
#include "trainer/click/scratch.hpp"
#include "trainer/config.hpp"
#include "trainer/dense_gradient_reducer.hpp"
#include "trainer/parameters.hpp"

namespace gpups::trainer {

// One microbatch of m samples, and where what is made of it goes.
struct ClickMicrobatch {
  MatrixView<float const> numbers;  // (m, numbers); no data where there are none
  MatrixView<float> blocks;         // (m, width), with the rows of all categories in their places
  MatrixView<float const> weights;  // (m, 1) the sums of the rows of one number
  bool training = false;            // else nothing is left out at random
  Clock clock{};
  View<std::uint32_t const> sample_numbers;  // (m) in the global batch
};

// A term of the logit.
class ClickTerm {
 public:
  virtual ~ClickTerm() = default;

  // Writes the term of each sample to `out`, (m, 1) of any stride, and keeps in `scratch` what backward() needs.
  // values: of all parameters. Queued on `stream`.
  virtual void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                       MatrixView<float> out) const = 0;

  // Given the logit's gradient, (m, 1) of stride 1: writes the gradients of its parameters to their places in
  // `gradients`, which it tells when one is queued, and that of the blocks to `block_gradients`, (m, width): adds it
  // where `accumulate`. Queued on `stream`.
  virtual void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                        MatrixView<float> logit_gradient, LayerGradients const& gradients,
                        MatrixView<float> block_gradients, bool accumulate) const = 0;

  // Whether backward() writes to block_gradients at all.
  virtual bool reads_blocks() const = 0;
};

// What a term is made of, and what it adds of its own.
struct TermContext {
  Features const& features;
  ModelConfig const& config;
  std::uint64_t seed;
  Parameters& parameters;
  ScratchPlan& scratch;
  float& base_logit;  // where the logit begins; the first term with a bias takes it

  float take_base_logit() const { return std::exchange(base_logit, 0.0F); }
};

class ClickModel {
 public:
  // Throws Error where the configuration does not fit the layout.
  ClickModel(Layout const& layout, ModelConfig const& config, std::uint64_t seed,
             SampleStatistics const& statistics = {});
  ClickModel(ClickModel const&) = delete;
  ClickModel& operator=(ClickModel const&) = delete;

  Features const& features() const { return features_; }
  Features& features() { return features_; }
  Parameters const& parameters() const { return parameters_; }

  // The terms of each sample, (m, terms()). Queued on `stream`.
  std::size_t terms() const { return terms_.size(); }
  void forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
               MatrixView<float> terms) const;
  // After forward() with the same scratch. gradients: of all parameters, whose padding is zero. Queued on `stream`.
  void backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                MatrixView<float> logit_gradient, LayerGradients const& gradients,
                MatrixView<float> block_gradients) const;

  // For forward() and, on the side, what else a microbatch takes. Any thread.
  ScratchPool& scratch() const { return pool_; }
  std::vector<std::size_t> const& scratch_columns() const { return plan_.columns(); }
  // In each scratch: the terms, and the gradient of the logit.
  Buffer terms_buffer() const { return terms_buffer_; }
  Buffer gradient_buffer() const { return gradient_buffer_; }

 private:
  Features features_;
  Parameters parameters_;
  ScratchPlan plan_;
  std::vector<std::unique_ptr<ClickTerm>> terms_;
  Buffer terms_buffer_{}, gradient_buffer_{};
  mutable ScratchPool pool_{plan_};
};

}  // namespace gpups::trainer
