// SPDX-License-Identifier: Apache-2.0
// Sums the gradients of dense layers over microbatches and ranks, as integer multiples of a grid unit. Each large layer
// has a separate allreduce. It starts as soon as all microbatches of the rank have computed the layer's gradient, while
// they compute the gradients of earlier layers. Small layers and biases share one allreduce at the end of the step. If
// NCCL sums on the devices, all layers share it: there, a sum takes less time than it takes to begin one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"
#include "gpups/stream.hpp"
#include "gpups/top_k_allreduce.hpp"
#include "trainer/dense/parameters.hpp"

namespace gpups::trainer {

// Describes the allreduce of dense gradients, for a log.

// The allreduces of a step.
struct DenseAllreduceSummary {
  struct LayerSums {
    std::size_t sums = 0, numbers = 0;  // number of allreduces, and of gradient elements in them
  };
  LayerSums exact{}, largest{};  // of all elements, and of the largest elements (top-k)
  int grid_log2 = -30;
  bool is_on_devices = false;              // `exact`: see Group::sums_on_devices()
  std::optional<TopKOptions> top_k{};      // options of `largest`
  AllreduceAlgorithm const* by = nullptr;  // algorithm of `largest`
};

// Bytes that all ranks have sent, and the number of steps.
struct DenseAllreduceTraffic {
  std::uint64_t bytes = 0, steps = 0;
};

// Returns lines for a log: one for `exact`, and one for `largest` if there is any. Returns no lines for a single rank.
std::vector<std::string> explain(DenseAllreduceSummary const& sums, int ranks, DenseAllreduceTraffic const& sent);

// Options of the allreduces, equal on all ranks.
struct DenseAllreduceOptions {
  // A layer with at least this many elements, padding included, is large. At most kLargeMax layers are large.
  std::size_t large_from = std::size_t{1} << 16;
  // Sends only the k largest elements of a large layer. Not set: sends all elements, so the sums have the same bits for
  // every number of ranks.
  std::optional<TopKOptions> top_k{};
};

// The sums of one rank's gradients with those of all other ranks. All ranks use it for the same steps, in this order:
// begin_step(), mark_ready() from any threads, begin_remaining(), wait().
class DenseGradientReducer {
 public:
  static constexpr std::size_t kLargeMax = Group::kAllreducesMax - 4;

  // gradients: (microbatches, stride); the first parameters.size() columns of a row are the gradient of one microbatch,
  // in the layout of the parameters. The memory must outlive this object.
  DenseGradientReducer(Group const& group, Parameters const& parameters, MatrixView<float const> gradients,
                       int grid_log2, DenseAllreduceOptions const& allreduce);

  // Begins a step in which this rank computes `microbatches` microbatches.
  void begin_step(Stream& stream, std::size_t microbatches);
  // Reports that one microbatch's gradient of `parameter` is queued on `stream`. Starts the allreduces that are ready:
  // those whose gradient all microbatches have reported. Allreduces start in the same order on all ranks. Any thread.
  void mark_ready(Stream& stream, Parameter const& parameter);
  // Starts the remaining allreduces. Without top_k, it does not wait for `stream`. Collective: a rank without
  // microbatches contributes zeros.
  void begin_remaining(Stream& stream);

  // Blocks until all allreduces of the step are complete. Returns the number of ranks with a gradient that cannot be
  // summed: not finite, or out of range.
  std::int64_t wait(Stream& stream);
  // The sums over all ranks, after wait(): (parameters.size()).
  View<std::int64_t const> sums() const {
    return is_one_sum_ ? joint_sums_.view().slice(0, parameters_.size()) : sums_;
  }
  // Returns the first element of the parameter array whose gradient of the last step cannot be summed on this rank, or
  // kNoRow. Waits for `stream`.
  std::uint32_t wait_bad_element(Stream& stream) const;

  // Returns the number and sizes of the allreduces of a step, for the log.
  DenseAllreduceSummary allreduce_summary() const;

  // Returns whether large layers sum velocities instead of gradients (momentum correction of TopKOptions).
  bool corrects_momentum() const { return momentum_; }
  // Returns whether the sum of this parameter is a velocity.
  bool has_momentum(Parameter const& parameter) const;

  // The residuals of a large layer's gradient, of all ranks, for a checkpoint.
  struct Residuals {
    std::string parameter;
    std::vector<std::string> of_ranks;  // one for each rank, serialized
  };
  // Returns the residuals of all large layers; nothing without top_k. Only rank 0 gets the bytes. Collective.
  std::vector<Residuals> wait_save(Stream& stream) const;
  // Returns the names of the parameters that have residuals.
  std::vector<std::string> parameters_with_residuals() const;
  // Restores the residuals of one parameter from a checkpoint.
  void restore(Residuals const& residuals);

  // Returns the memory of this object.
  std::vector<MemoryPlanLine> memory_plan() const;
  // Returns the same plan without an object.
  static std::vector<MemoryPlanLine> memory_plan(Parameters const& parameters, DenseAllreduceOptions const& allreduce);

 private:
  struct LargeLayer {
    Parameter const& parameter;
    std::size_t number;  // index of the parameter
    std::optional<TopKAllreduce> top_k{};
    CollectiveRequest request{};
    std::size_t missing = 0;  // microbatches that have not reported its gradient
  };
  // Elements that are summed with others: of a layer, or of all layers.
  struct JointSum {
    std::size_t offset, size;  // in the layout of the parameters
    std::size_t number;        // index of the parameter, or 0 for all
    std::size_t at;            // offset in joint_sums_
  };
  void begin(Stream& stream, LargeLayer& large);
  void sum_microbatches(Stream& stream, std::size_t offset, std::size_t number, View<std::int64_t> sums);
  View<std::int64_t> sums_of(Parameter const& p) const { return sums_.view().slice(p.offset, p.size()); }
  Group group_;
  Parameters const parameters_;
  MatrixView<float const> gradients_;
  int grid_log2_;
  std::optional<TopKOptions> const top_k_;
  bool momentum_;  // large layers sum velocities
  bool sums_on_devices_;
  bool is_one_sum_;                    // all layers share one allreduce, on the devices
  Array<std::int64_t> sums_;           // empty with is_one_sum_
  Array<std::int64_t> joint_sums_;     // and, last, the number of ranks with a bad element
  Array<std::uint32_t> bad_elements_;  // for each parameter, relative to its first element
  std::deque<LargeLayer> large_;       // in the order of their allreduces: from the last layer to the first
  std::vector<JointSum> joint_;
  std::size_t joint_numbers_ = 0;  // elements of these, without padding
  CollectiveRequest joint_request_;
  std::size_t microbatches_ = 0;

  std::mutex mutex_;        // guards the members below and LargeLayer::missing
  std::size_t next_ = 0;    // the first layer of large_ whose allreduce has not started
  bool beginning_ = false;  // a thread is starting allreduces
};

// The gradients of one microbatch, with a callback for each gradient that is ready.
class LayerGradients {
 public:
  using OnReady = std::function<void(Stream&, Parameter const&)>;

  // all: gradients in the layout of the parameters. on_ready: called by mark_ready() for each parameter.
  LayerGradients(View<float> all, OnReady on_ready = {})
      : all_(all), on_ready_(std::move(on_ready)) {}  // NOLINT: implicit on purpose

  MatrixView<float> matrix(Parameter const& p) const { return p.matrix(all_); }
  View<float> vector(Parameter const& p) const { return p.vector(all_); }

  // Reports that all kernels that write these gradients are queued on `stream`.
  template <class... P>
  void mark_ready(Stream& stream, P const&... parameters) const {
    if (on_ready_) (on_ready_(stream, parameters), ...);
  }

 private:
  View<float> all_;
  OnReady on_ready_;
};

}  // namespace gpups::trainer
