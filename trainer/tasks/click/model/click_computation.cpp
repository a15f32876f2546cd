// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/model/click_computation.hpp"

#include <algorithm>

#include "kernels/base/nvtx.hpp"
#include "kernels/dense/interactions.hpp"
#include "kernels/dense/logistic_loss.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/runtime/arena.hpp"

namespace gpups::trainer {
namespace {

Matrix<float> zeros(Stream& stream, std::size_t rows, std::size_t columns) {
  Matrix<float> matrix(stream.device(), rows, columns);
  memory::fill_bytes(stream, matrix.view().data(), 0, matrix.view().flat().bytes());  // the padding stays zero
  return matrix;
}

// The blocks of samples, as rows of a part's table.
MatrixView<float> slots(ClickModel const& model, std::size_t part, MatrixView<float> blocks) {
  return model.features().slots(part, blocks.data(), blocks.rows(), blocks.device());
}

}  // namespace

std::uint64_t ClickComputation::bytes_for(std::size_t samples, std::size_t width) {
  std::uint64_t const room = samples + samples / 8, floats = 2 * row_stride(width) + 2 * row_stride(1) + 1;
  return room * (floats * sizeof(float) + sizeof(std::int64_t));
}

void ClickComputation::reserve(Stream& stream, std::size_t samples) {
  if (losses_.size() >= samples) return;
  stream.wait();
  std::size_t const room = samples + samples / 8, width = model_.features().width();
  blocks_ = zeros(stream, room, width);
  block_gradients_ = zeros(stream, room, width);
  weights_ = zeros(stream, room, 1);
  logit_gradients_ = zeros(stream, room, 1);
  losses_ = Array<std::int64_t>(stream.device(), room);
  probabilities_ = Array<float>(stream.device(), room);
}

void ClickComputation::pool(Stream& stream, ClickInput const& input, std::span<MatrixView<float const> const> rows,
                            std::span<View<std::uint32_t const> const> positions) {
  kernels::NvtxRange const range("pool");
  reserve(stream, input.samples);
  auto const blocks = blocks_.view().slice(0, input.samples);
  for (std::size_t p = 0; p < input.parts.size(); ++p) {
    ClickInput::InputPart const& part = input.parts[p];
    kernels::gather_pooled(stream, {.rows = rows[p],
                                    .positions = positions[p],
                                    .offsets = part.offsets,
                                    .mean = false,
                                    .out = part.weights ? weights_.view() : slots(model_, p, blocks),
                                    .coefficients = part.coefficients,
                                    .targets = part.targets});
  }
  if (model_.features().head_has_numbers()) kernels::copy_columns(stream, {.from = input.numbers, .to = blocks});
}

ClickMicrobatch ClickComputation::microbatch(ClickInput const& input, std::size_t first, std::size_t count) const {
  return {.numbers = input.numbers.view().slice(first, count),
          .blocks = blocks_.view().slice(first, count),
          .weights = weights_.view().slice(first, count),
          .precision = model_.precision()};
}

MatrixView<float> ClickComputation::forward(Stream& stream, ClickInput const& input, ClickMicrobatch const& batch,
                                            std::size_t first, View<float const> values, Scratch const& scratch) {
  std::size_t const count = batch.blocks.rows();
  auto const terms = scratch.matrix(model_.terms_buffer(), count);
  View<float> const gradient = scratch.column(model_.gradient_buffer(), count);
  model_.forward(stream, batch, values, scratch, terms);
  kernels::logistic_loss(stream, {.terms = terms,
                                  .labels = input.labels.view().slice(first, count),
                                  .gradient = gradient,
                                  .losses = losses_.view().slice(first, count),
                                  .probabilities = probabilities_.view().slice(first, count)});
  return {gradient.data(), count, 1, 1, gradient.device()};
}

void ClickComputation::forward_backward(Stream& stream, ClickInput const& input, StepSamples const& samples,
                                        DenseLayers& dense) {
  auto const& cuts = samples.microbatches;
  std::size_t most = 0;
  for (Microbatch const& cut : cuts) most = std::max<std::size_t>(most, cut.count);
  dense.begin_step(stream, cuts.size());
  kernels::parallel_for(stream, cuts.size(), [&](Stream& part, std::size_t i) {
    auto const [number, first, count] = cuts[i];
    ClickMicrobatch batch = microbatch(input, first, count);
    batch.training = true;
    batch.clock = samples.clock;
    batch.sample_numbers = samples.numbers.slice(first, count);
    auto scratch = model_.scratch().take(part, most);
    MatrixView<float> const gradient = forward(part, input, batch, first, dense.values(), *scratch);
    kernels::copy_columns(part, {.from = gradient, .to = logit_gradients_.view().slice(first, count)});
    model_.backward(part, batch, dense.values(), *scratch, gradient, dense.layer_gradients(i),
                    block_gradients_.view().slice(first, count));
    model_.scratch().give_back(std::move(scratch));
  });
}

std::vector<TableGradients> ClickComputation::gradients(ClickInput const& input) const {
  std::vector<TableGradients> gradients;
  for (std::size_t p = 0; p < input.parts.size(); ++p) {
    ClickInput::InputPart const& part = input.parts[p];
    gradients.push_back({.sources = part.weights ? logit_gradients_.view() : slots(model_, p, block_gradients_),
                         .source_indices = part.sources,
                         .coefficients = part.coefficients});
  }
  return gradients;
}

void ClickComputation::predict(Stream& stream, ClickInput const& input, View<float const> values) {
  std::size_t const blocks = (input.samples + kPredictedAtOnce - 1) / kPredictedAtOnce;
  kernels::parallel_for(stream, blocks, [&](Stream& part, std::size_t i) {
    std::size_t const first = i * kPredictedAtOnce, count = std::min(kPredictedAtOnce, input.samples - first);
    auto scratch = model_.scratch().take(part, kPredictedAtOnce);
    forward(part, input, microbatch(input, first, count), first, values, *scratch);
    model_.scratch().give_back(std::move(scratch));
  });
}

}  // namespace gpups::trainer
