// SPDX-License-Identifier: Apache-2.0
// The parameters of a model's dense layers on one rank: every rank has a copy, and all change alike.
//
// A microbatch leaves a gradient in floats; those of a step are summed as integers, over microbatches and ranks, and
// become a float once. So the bits are the same for every number of ranks and threads. Takes 4 bytes per parameter, as
// many for each microbatch of the rank, 8 for the sum, and the optimizer's state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/dense/update_dense.hpp"
#include "trainer/parameters.hpp"

namespace gpups::trainer {

struct DenseOptions {
  kernels::DenseOptimizer optimizer{};
  Schedule schedule{};
  std::uint64_t seed = 1;
  // Gradients are summed in units of 2^grid_log2 of the summed loss's gradient, as those of tables are.
  int grid_log2 = -30;
};

class DenseLayers {
 public:
  // microbatches: the most that this rank computes in a step. Allocates all of it.
  DenseLayers(Group const& group, Device device, Parameters parameters, std::size_t microbatches,
              DenseOptions const& options);

  Parameters const& parameters() const { return parameters_; }
  View<float const> values() const { return values_; }
  // Where microbatch i of the rank leaves its gradient: all of it, shaped as the values. Padding is zero and must stay.
  View<float> gradient(std::size_t i) const { return gradients_.view().slice(i * stride(), parameters_.size()); }

  // Begins to sum the gradients of this rank's first `microbatches` with those of the other ranks. Waits for `stream`.
  // Collective: a rank without samples has none, and takes part.
  void begin_sum(Stream& stream, std::size_t microbatches);
  // Blocks until the sums are here, and takes the optimizer's step. samples: of the step, over all ranks. Throws
  // Error, on all ranks alike and before any layer has changed, where a gradient is not finite or too large.
  void wait_apply(Stream& stream, Clock clock, std::size_t samples);

  // A digest of parameters and optimizer state. Waits.
  std::uint64_t wait_hash(Stream& stream) const;
  // Every parameter and its state by name, as floats without padding. Waits.
  std::vector<Blob> wait_save(Stream& stream) const;
  // Takes what wait_save() gave. Throws Error where one is missing or has another size, naming it. Waits.
  void wait_restore(Stream& stream, std::span<Blob const> blobs);

  // One parameter's numbers, (rows, columns). Waits.
  std::vector<float> wait_numbers(Stream& stream, Parameter const& parameter) const;

  // What all of it takes on this rank's device.
  std::vector<MemoryLine> memory_plan() const;

 private:
  // One of the arrays below with its name in checkpoints.
  struct Part {
    char const* name;
    View<float> numbers;
  };
  std::vector<Part> parts() const;
  std::size_t stride() const { return row_stride(parameters_.size()); }
  void initialize(Stream& stream);
  float rate(Clock clock) const;
  // "number 7 of top.0.weights", for errors.
  std::string name_of(std::uint32_t number) const;

  Group group_;
  Parameters parameters_;
  DenseOptions options_;
  Array<float> values_, first_, second_;
  kernels::DenseUnits units_;  // LAMB: a unit for each parameter
  Array<float> gradients_;     // (microbatches, stride())
  Array<std::int64_t> sums_;   // (size + 1); the last counts ranks with a gradient that cannot be summed
  std::uint32_t fault_ = 0;    // of the step: the first parameter whose gradient cannot be summed here, or kNoRow
  Reduction reduction_;
};

}  // namespace gpups::trainer
