// SPDX-License-Identifier: Apache-2.0
// Computes a click-through model on a batch: pools rows into blocks, then computes logits, losses and gradients,
// microbatch by microbatch. Memory is reused from batch to batch, and only grows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/dense/dense_layers.hpp"
#include "trainer/step/batch_sampler.hpp"
#include "trainer/tasks/click/model/click_model.hpp"

namespace gpups::trainer {

// The computation of one rank, with the memory that it uses. One thread at a time.
class ClickComputation {
 public:
  // `model` must outlive this object.
  explicit ClickComputation(ClickModel const& model) : model_(model) {}

  // Pools the rows of a batch into the blocks of its samples. For each part of `input`, `rows` has rows of the table
  // and `positions` the row of each entry. Queued on `stream`; waits for `stream` if memory has to grow.
  void pool(Stream& stream, ClickInput const& input, std::span<MatrixView<float const> const> rows,
            std::span<View<std::uint32_t const> const> positions);

  // Data about a step's samples that ClickInput does not have.
  struct StepSamples {
    Clock clock{};
    View<std::uint32_t const> numbers;  // (n) in the global batch
    std::span<Microbatch const> microbatches;
  };
  // Computes losses, probabilities, and the gradients of rows and of layers. Microbatch i writes the latter to
  // dense.layer_gradients(i); layers that are ready are summed over the ranks meanwhile. Queued on `stream`. REQUIRES:
  // pool() was called.
  void forward_backward(Stream& stream, ClickInput const& input, StepSamples const& samples, DenseLayers& dense);
  // Returns the gradients of rows, one element for each part of `input`, after forward_backward(). They refer to memory
  // of this object.
  std::vector<TableGradients> gradients(ClickInput const& input) const;

  // Computes losses and probabilities. values: of all layers. Queued on `stream`. REQUIRES: pool() was called.
  void predict(Stream& stream, ClickInput const& input, View<float const> values);

  // Bytes of memory for a batch of `samples` samples, without the scratch of threads. width: floats of a block.
  static std::uint64_t bytes_for(std::size_t samples, std::size_t width);
  // Samples that a thread predicts together.
  static constexpr std::size_t kPredictedAtOnce = 512;

  // Results for the batch, (input.samples). Losses are in units of 2^-30.
  View<std::int64_t const> losses(ClickInput const& input) const { return losses_.view().slice(0, input.samples); }
  View<float const> probabilities(ClickInput const& input) const {
    return probabilities_.view().slice(0, input.samples);
  }

 private:
  void reserve(Stream& stream, std::size_t samples);
  ClickMicrobatch microbatch(ClickInput const& input, std::size_t first, std::size_t count) const;
  // Computes terms, losses and probabilities of the samples of `batch`, which begin at `first`. Returns the gradients
  // of their logits, (m, 1).
  MatrixView<float> forward(Stream& stream, ClickInput const& input, ClickMicrobatch const& batch, std::size_t first,
                            View<float const> values, Scratch const& scratch);

  ClickModel const& model_;
  Matrix<float> blocks_, block_gradients_;  // (n, width)
  Matrix<float> weights_;                   // (n, 1): sums of the linear part's weights
  Matrix<float> logit_gradients_;           // (n, 1)
  Array<std::int64_t> losses_;              // (n)
  Array<float> probabilities_;              // (n)
};

}  // namespace gpups::trainer
