// SPDX-License-Identifier: Apache-2.0
// The parameters of a model's dense layers on one rank. Every rank has a copy, and all copies stay equal.
//
// A microbatch writes its gradient as floats. The gradients of a step are summed as integers over microbatches and
// ranks, and the sum is converted to float once. So the bits are the same for every number of ranks and threads, unless
// large layers send their largest elements only. Memory: 4 bytes per parameter, 4 more for each microbatch of the rank,
// 8 for the sum, and the optimizer state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/dense/update_dense.hpp"
#include "trainer/dense/dense_gradient_reducer.hpp"
#include "trainer/dense/parameters.hpp"

namespace gpups::trainer {

// Options of dense layers, equal on all ranks.
struct DenseOptions {
  kernels::DenseOptimizer optimizer{};
  Schedule schedule{};
  std::uint64_t seed = 1;
  // The summed loss's gradients are summed as multiples of 2^grid_log2, like those of tables.
  int grid_log2 = -30;
  DenseAllreduceOptions allreduce{};
};

// Parameters, optimizer state and gradients of the dense layers. One thread at a time, except for layer_gradients().
class DenseLayers {
 public:
  // Allocates all memory and sets the initial values. microbatches: the largest number that this rank computes in a
  // step.
  DenseLayers(Group const& group, Device device, Parameters parameters, std::size_t microbatches,
              DenseOptions const& options);

  Parameters const& parameters() const { return parameters_; }
  View<float const> values() const { return values_; }
  // The gradient of the rank's microbatch i, in the layout of values(). Padding is zero and must stay zero.
  View<float> gradient(std::size_t i) const { return gradients_.view().slice(i * stride(), parameters_.size()); }

  // Begins a step in which this rank computes `microbatches` microbatches.
  void begin_step(Stream& stream, std::size_t microbatches);
  // Returns the gradients of microbatch i of the step. The sum of a large layer starts when all microbatches have
  // marked its gradient as ready. Any thread.
  LayerGradients layer_gradients(std::size_t i);
  // Starts the allreduces that have not started, of the gradients of this rank's first `microbatches` microbatches.
  // Waits for `stream`. Collective: a rank without samples calls it with 0, and need not call begin_step().
  void begin_allreduce(Stream& stream, std::size_t microbatches);
  // Blocks until the allreduces are complete and applies the optimizer. samples: size of the global batch. Throws Error
  // on all ranks, before any layer has changed, if a gradient is not finite or too large.
  void wait_apply(Stream& stream, Clock clock, std::size_t samples);

  DenseAllreduceSummary allreduce_summary() const { return sums_->allreduce_summary(); }

  // Returns a digest of parameters and optimizer state. Blocks.
  std::uint64_t wait_hash(Stream& stream) const;
  // Returns every parameter and its optimizer state, as floats without padding, and on rank 0 the residuals of
  // gradients. Blocks. Collective.
  std::vector<Blob> wait_save(Stream& stream) const;
  // Restores the blobs of wait_save(). Throws Error if an array or all residuals of a gradient are missing, or if an
  // array has another size. Blocks.
  void wait_restore(Stream& stream, std::span<Blob const> blobs);

  // Returns the values of one parameter, (rows, columns) without padding. Blocks.
  std::vector<float> wait_numbers(Stream& stream, Parameter const& parameter) const;

  // Returns the memory on this rank's device.
  std::vector<MemoryPlanLine> memory_plan() const;
  // Returns the same plan without an object.
  static std::vector<MemoryPlanLine> memory_plan(Parameters const& parameters, std::size_t microbatches,
                                                 DenseOptions const& options);

 private:
  // One of the arrays below, and its name in checkpoints.
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
  // A range of the parameter array, and the optimizer that updates it.
  struct ParameterRange {
    std::size_t first, size;
    kernels::DenseOptimizer optimizer;
  };
  void update(Stream& stream, Clock clock, std::size_t samples, ParameterRange const& range);
  // Returns a text such as "number 7 of top.0.weights", for error messages.
  std::string name_of(std::uint32_t number) const;

  Group group_;
  Parameters parameters_;
  DenseOptions options_;
  Array<float> values_, first_, second_;
  kernels::DenseUnits units_;  // LAMB: a unit for each parameter
  Array<float> gradients_;     // (microbatches, stride())
  std::unique_ptr<DenseGradientReducer> sums_;
  bool stepping_ = false;  // between begin_step() and begin_allreduce()
};

}  // namespace gpups::trainer
