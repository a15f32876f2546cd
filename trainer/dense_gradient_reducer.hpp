// SPDX-License-Identifier: Apache-2.0
// Sums the gradients of dense layers over microbatches and ranks, in whole units of a grid. A large layer has a sum of
// its own, which begins as soon as all microbatches of the rank have its gradient, while they go on with the layers
// before it; small ones and biases go together at the end.
#pragma once

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
#include "trainer/explain_dense_allreduce.hpp"
#include "trainer/parameters.hpp"

namespace gpups::trainer {

// How sums of large layers go over ranks. The same on all of them.
struct DenseAllreduceOptions {
  // Layers of as many numbers are large; there are at most kLargeMax.
  std::size_t large_from = std::size_t{1} << 16;
  // What is sent of them; nothing: all, so that sums have the same bits for every number of ranks.
  std::optional<TopKOptions> top_k{};
};

class DenseGradientReducer {
 public:
  static constexpr std::size_t kLargeMax = Group::kAllreducesMax - 4;

  // gradients: (microbatches, stride), whose first columns are shaped as the parameters; must stay.
  DenseGradientReducer(Group const& group, Parameters const& parameters, MatrixView<float const> gradients,
                       int grid_log2, DenseAllreduceOptions const& allreduce);

  // A step begins, in which this rank has so many microbatches.
  void begin_step(Stream& stream, std::size_t microbatches);
  // A microbatch's gradient of a parameter is queued on `stream`. Once all microbatches have said so, its sum may
  // begin: sums do in one order on all ranks. Any thread.
  void mark_ready(Stream& stream, Parameter const& parameter);
  // Begins what has not begun. Waits for `stream`. Collective: a rank without microbatches has zeros.
  void begin_remaining(Stream& stream);

  // Blocks until sums() are those over all ranks. Returns on how many ranks a gradient cannot be summed.
  std::int64_t wait(Stream& stream);
  // (parameters.size())
  View<std::int64_t const> sums() const { return sums_; }
  // The first number of the array whose gradient cannot be summed on this rank, or kNoRow. After begin_remaining().
  std::uint32_t bad_element() const { return bad_element_; }

  // For explain().
  DenseAllreduceSummary allreduce_summary() const;

  // Whether sums are of velocities, by the options' momentum: those of large layers.
  bool corrects_momentum() const { return momentum_; }
  bool has_momentum(Parameter const& parameter) const;

  // The residuals of a large layer's gradient, for a checkpoint; there are none where all is sent. Collective.
  struct Residuals {
    std::string parameter;
    std::vector<std::string> of_ranks;
  };
  std::vector<Residuals> wait_save(Stream& stream) const;  // on rank 0; elsewhere the bytes are left out
  // The parameters that have residuals; and those of one of them, from a checkpoint.
  std::vector<std::string> parameters_with_residuals() const;
  void restore(Residuals const& residuals);

  std::vector<MemoryPlanLine> memory_plan() const;
  // The same, before it is made.
  static std::vector<MemoryPlanLine> memory_plan(Parameters const& parameters, DenseAllreduceOptions const& allreduce);

 private:
  struct LargeLayer {
    Parameter const& parameter;
    std::size_t number;  // of the parameter
    std::optional<TopKAllreduce> top_k{};
    CollectiveRequest request{};
    std::size_t missing = 0;  // microbatches that have no gradient of it yet
  };
  struct SmallLayer {
    Parameter const& parameter;
    std::size_t number;
    std::size_t at;  // among the small ones' sums
  };
  void begin(Stream& stream, LargeLayer& large);
  void sum_microbatches(Stream& stream, Parameter const& parameter, std::size_t number, View<std::int64_t> sums);
  View<std::int64_t> sums_of(Parameter const& p) const { return sums_.view().slice(p.offset, p.size()); }
  void find_fault(Stream& stream);

  Group group_;
  Parameters const parameters_;
  MatrixView<float const> gradients_;
  int grid_log2_;
  std::optional<TopKOptions> const top_k_;
  bool momentum_;  // is corrected
  Array<std::int64_t> sums_;
  Array<std::int64_t> small_sums_;     // and how many ranks have a fault
  Array<std::uint32_t> bad_elements_;  // of each parameter, counted from its first number
  std::deque<LargeLayer> large_;       // in the order in which they begin: the last first
  std::vector<SmallLayer> small_;
  CollectiveRequest small_request_;
  std::size_t microbatches_ = 0;
  std::uint32_t bad_element_ = 0;

  std::mutex mutex_;        // of what follows, and LargeLayer::missing
  std::size_t next_ = 0;    // large_ before it have begun
  bool beginning_ = false;  // some thread begins them
};

class LayerGradients {
 public:
  using OnReady = std::function<void(Stream&, Parameter const&)>;

  // all: shaped as the parameters.
  LayerGradients(View<float> all, OnReady on_ready = {})
      : all_(all), on_ready_(std::move(on_ready)) {}  // NOLINT: implicit on purpose

  MatrixView<float> matrix(Parameter const& p) const { return p.matrix(all_); }
  View<float> vector(Parameter const& p) const { return p.vector(all_); }

  // All that writes these gradients is queued on `stream`.
  template <class... P>
  void mark_ready(Stream& stream, P const&... parameters) const {
    if (on_ready_) (on_ready_(stream, parameters), ...);
  }

 private:
  View<float> all_;
  OnReady on_ready_;
};

}  // namespace gpups::trainer
