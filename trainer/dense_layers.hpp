// SPDX-License-Identifier: Apache-2.0
// The parameters of a model's dense layers on one rank: every rank has a copy, and all change alike.
//
// A microbatch leaves a gradient in floats; those of a step are summed as integers, over microbatches and ranks, and
// become a float once. So the bits are the same for every number of ranks and threads, unless only the largest of large
// layers are sent. Takes 4 bytes per parameter, as many for each microbatch of the rank, 8 for the sum, and the
// optimizer's state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/dense/update_dense.hpp"
#include "trainer/dense_gradient_reducer.hpp"
#include "trainer/parameters.hpp"

namespace gpups::trainer {

struct DenseOptions {
  kernels::DenseOptimizer optimizer{};
  Schedule schedule{};
  std::uint64_t seed = 1;
  // Gradients are summed in units of 2^grid_log2 of the summed loss's gradient, as those of tables are.
  int grid_log2 = -30;
  DenseAllreduceOptions allreduce{};
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

  // A step begins in which this rank has so many microbatches.
  void begin_step(Stream& stream, std::size_t microbatches);
  // For microbatch i of it, on any thread: where gradients go, which are summed over the ranks as they come.
  LayerGradients layer_gradients(std::size_t i);
  // Begins to sum what is not on its way yet of the gradients of this rank's first `microbatches`. Waits for `stream`.
  // Collective: a rank without samples has none, and takes part; it need not call begin_step().
  void begin_allreduce(Stream& stream, std::size_t microbatches);
  // Blocks until the sums are here, and takes the optimizer's step. samples: of the step, over all ranks. Throws
  // Error, on all ranks alike and before any layer has changed, where a gradient is not finite or too large.
  void wait_apply(Stream& stream, Clock clock, std::size_t samples);

  // For explain().
  DenseAllreduceSummary allreduce_summary() const { return sums_->allreduce_summary(); }

  // A digest of parameters and optimizer state. Waits.
  std::uint64_t wait_hash(Stream& stream) const;
  // Every parameter and its state by name, as floats without padding; and residuals of gradients, on rank 0. Waits.
  // Collective.
  std::vector<Blob> wait_save(Stream& stream) const;
  // Takes what wait_save() gave. Throws Error where an array, or all residuals of a gradient, are missing or have
  // another size, naming them. Waits.
  void wait_restore(Stream& stream, std::span<Blob const> blobs);

  // One parameter's numbers, (rows, columns). Waits.
  std::vector<float> wait_numbers(Stream& stream, Parameter const& parameter) const;

  // What all of it takes on this rank's device.
  std::vector<MemoryPlanLine> memory_plan() const;
  // The same, before they are made.
  static std::vector<MemoryPlanLine> memory_plan(Parameters const& parameters, std::size_t microbatches,
                                                 DenseOptions const& options);

 private:
  // One of the arrays below with its name in checkpoints.
  struct NamedArray {
    char const* name;
    View<float> numbers;
  };
  std::vector<NamedArray> parts() const;
  std::size_t stride() const { return row_stride(parameters_.size()); }
  void initialize(Stream& stream);
  std::vector<Blob> wait_parameters(Stream& stream) const;
  void restore_residuals(std::span<Blob const> blobs);
  float rate(Clock clock) const;
  // Numbers of the array, and what changes them.
  struct ParameterRange {
    std::size_t first, size;
    kernels::DenseOptimizer optimizer;
  };
  void update(Stream& stream, Clock clock, std::size_t samples, ParameterRange const& range);
  // "number 7 of top.0.weights", for errors.
  std::string name_of(std::uint32_t number) const;

  Group group_;
  Parameters parameters_;
  DenseOptions options_;
  Array<float> values_, first_, second_;
  kernels::DenseUnits units_;  // LAMB: a unit for each parameter
  Array<float> gradients_;     // (microbatches, stride())
  std::unique_ptr<DenseGradientReducer> sums_;
  bool stepping_ = false;  // begin_step() has been called, and begin_allreduce() not since
};

}  // namespace gpups::trainer
