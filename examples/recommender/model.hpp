// SPDX-License-Identifier: Apache-2.0
// The model, one sample at a time: a product of embedding rows, and a small dense layer of which every rank has a copy.
//
//   logit = habit + liked . item + output . relu(hidden [liked, item, context] + bias) + bias
//
// A rank's gradients of dense parameters are summed as integers over its microbatches, then over the ranks, and become
// floats once. Integers have no order, and a microbatch is computed by one rank, whatever their number: so the copies
// are the same on all ranks, and the same on any number of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tables.hpp"

// What a sample reads, and where its gradients go: habit (1), item and liked (kDim), context (kContextDim).
template <class Float>
struct SampleRows {
  Float *habit, *item, *liked, *context;
};

class Model {
 public:
  Model();

  // The logit of a click.
  float score(SampleRows<float const> const& rows) const;
  // The same; writes the sample's gradients, adds those of dense parameters, (size()), and returns the logit.
  float learn(SampleRows<float const> const& rows, bool clicked, SampleRows<float> const& gradients,
              std::span<float> dense_gradients) const;

  // Adds a microbatch's gradients to the sums of the rank. Throws gpups::Error where one is not finite.
  static void add_to_sums(std::span<float const> dense_gradients, gpups::View<std::int64_t> sums);
  // Adagrad, with the gradients' sums over all samples of all ranks.
  void update(gpups::View<std::int64_t const> sums, std::size_t samples);

  static constexpr std::size_t size() { return kOutputBias + 1; }
  std::uint64_t hash() const;
  std::span<float const> values() const { return values_; }

  // As a blob for a checkpoint, and back. Throws gpups::Error where there is none.
  gpups::Blob save() const;
  void restore(std::span<gpups::Blob const> blobs);

 private:
  static constexpr std::size_t kInputs = 2 * kDim + kContextDim, kUnits = 16;
  // Where each layer's parameters begin: hidden (kUnits, kInputs) and its bias, output (kUnits) and its bias.
  static constexpr std::size_t kHidden = 0, kHiddenBias = kUnits * kInputs, kOutput = kHiddenBias + kUnits;
  static constexpr std::size_t kOutputBias = kOutput + kUnits;
  using Inputs = std::array<float, kInputs>;
  using Units = std::array<float, kUnits>;
  float forward(SampleRows<float const> const& rows, Inputs& inputs, Units& units) const;

  std::vector<float> values_;   // (size())
  std::vector<float> squares_;  // (size()) Adagrad's sums of squared gradients
};
