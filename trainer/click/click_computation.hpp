// SPDX-License-Identifier: Apache-2.0
// What a click-through model makes of a batch: blocks from rows, then, microbatch by microbatch, logits, losses and
// gradients. Its memory is reused from batch to batch, and only grows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/batch_sampler.hpp"
#include "trainer/click/click_model.hpp"
#include "trainer/dense_layers.hpp"

namespace gpups::trainer {

class ClickComputation {
 public:
  // `model` must stay.
  explicit ClickComputation(ClickModel const& model) : model_(model) {}

  // Writes the rows of a batch to the blocks of its samples, pooled. rows, positions: of each part of `input`, the
  // table's rows and each entry's place among them. Queued on `stream`; waits for it where memory has to grow.
  void pool(Stream& stream, ClickInput const& input, std::span<MatrixView<float const> const> rows,
            std::span<View<std::uint32_t const> const> positions);

  // What a step knows of its samples beside their values.
  struct StepSamples {
    Clock clock{};
    View<std::uint32_t const> numbers;  // (n) in the global batch
    std::span<Microbatch const> microbatches;
  };
  // After pool(): losses, probabilities, and the gradients of rows and, microbatch i to dense.gradient(i), of layers,
  // whose sums over the ranks begin meanwhile. Queued on `stream`.
  void forward_backward(Stream& stream, ClickInput const& input, StepSamples const& samples, DenseLayers& dense);
  // One element for each part of `input`, after forward_backward(); refers to this object.
  std::vector<TableGradients> gradients(ClickInput const& input) const;

  // After pool(): losses and probabilities. Queued on `stream`.
  void predict(Stream& stream, ClickInput const& input, View<float const> values);

  // What it takes for so many samples, beside the scratch of its threads.
  static std::uint64_t bytes_for(std::size_t samples, std::size_t width);
  // Samples that a thread predicts at once.
  static constexpr std::size_t kPredictedAtOnce = 512;

  View<std::int64_t const> losses(ClickInput const& input) const { return losses_.view().slice(0, input.samples); }
  View<float const> probabilities(ClickInput const& input) const {
    return probabilities_.view().slice(0, input.samples);
  }

 private:
  void reserve(Stream& stream, std::size_t samples);
  ClickMicrobatch microbatch(ClickInput const& input, std::size_t first, std::size_t count) const;
  // Terms, loss and the logit's gradient of samples first .. first + count - 1. Returns the latter, (count, 1).
  MatrixView<float> forward(Stream& stream, ClickInput const& input, ClickMicrobatch const& batch, std::size_t first,
                            View<float const> values, Scratch const& scratch);

  ClickModel const& model_;
  Matrix<float> blocks_, block_gradients_;  // (n, width)
  Matrix<float> weights_;                   // (n, 1): the sums of rows of one number
  Matrix<float> logit_gradients_;           // (n, 1)
  Array<std::int64_t> losses_;              // (n)
  Array<float> probabilities_;              // (n)
};

}  // namespace gpups::trainer
