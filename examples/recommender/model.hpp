// SPDX-License-Identifier: Apache-2.0
// The model of a sample: a dot product of embedding rows, and a small dense layer, of which every rank has a copy.
//
//   logit = habit + liked . item + output . relu(hidden [liked, item, context] + bias) + bias
//
// The gradients of dense parameters are summed as integers over the microbatches of a rank, then over the ranks, and
// are converted to floats after that. Sums of integers do not depend on the order, and each microbatch is computed by
// one rank. So the copies are the same on all ranks, and for every number of ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tables.hpp"

// The rows of a sample, or their gradients: habit (1), item and liked (kDim), context (kContextDim).
template <class Float>
struct SampleRows {
  Float *habit, *item, *liked, *context;
};

// The dense layer, and the model's logit.
class Model {
 public:
  Model();

  // Returns the logit of a click.
  float score(SampleRows<float const> const& rows) const;
  // Returns the logit, and computes gradients: writes those of the rows to `gradients`, and adds those of the dense
  // parameters to `dense_gradients`, (size()).
  float learn(SampleRows<float const> const& rows, bool clicked, SampleRows<float> const& gradients,
              std::span<float> dense_gradients) const;

  // Adds the gradients of a microbatch to the sums of the rank. Throws gpups::Error if one is not finite or too large.
  static void add_to_sums(std::span<float const> dense_gradients, gpups::View<std::int64_t> sums);
  // Updates the parameters by Adagrad. sums: of the gradients of all ranks; samples: of all ranks.
  void update(gpups::View<std::int64_t const> sums, std::size_t samples);

  static constexpr std::size_t size() { return kOutputBias + 1; }
  std::uint64_t hash() const;
  std::span<float const> values() const { return values_; }

  // Converts to a blob of a checkpoint, and back. restore() throws gpups::Error if the blob is missing or of another
  // model.
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
