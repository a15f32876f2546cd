// SPDX-License-Identifier: Apache-2.0
// Top-k SGD with error feedback for a dense gradient: each step sends the elements that have become largest, and all
// others wait in a residual. Whole units of a grid, so that what has been sent and the residual are the sum of the
// gradients to the last bit (Alistarh et al., NeurIPS 2018; with momentum correction and masking as in Deep Gradient
// Compression, Lin et al., ICLR 2018, and without its clipping). On the host.
#pragma once

#include <cstdint>
#include <optional>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct TopKFeedbackOptions {
  int grid_log2 = -30;           // a unit is 2^grid_log2
  double density = .001;         // share of the elements to send
  double initial_density = .25;  // in the first of the steps of warming up, and less from step to step
  std::uint64_t warmup_steps = 0;
  float momentum = 0;               // a velocity is accumulated instead of the gradient, and forgotten where it is sent
  std::uint64_t exact_every = 128;  // steps from one exact selection to the next
};

class TopKFeedback {
 public:
  TopKFeedback(std::uint64_t size, TopKFeedbackOptions const& options);

  // Elements of a vector, ascending.
  struct SelectedUnits {
    Array<std::uint32_t> indices;
    Array<std::int64_t> units;
  };
  // Adds a step's gradient, and takes out what is to be sent: about k elements. They are those above the threshold of
  // the steps before; the k largest where there is none yet, or it lets through less than half or more than twice as
  // many. Throws Error where the gradient is not finite or leaves the grid's range; the
  // residual is of no use then. A gradient is of floats, or of units.
  SelectedUnits step(Stream& stream, View<float const> gradient);
  SelectedUnits step(Stream& stream, View<std::int64_t const> gradient);
  // The same without throwing: where it would, nothing is chosen, and `rejected` is the first element at fault.
  SelectedUnits step(Stream& stream, View<std::int64_t const> gradient, std::optional<std::uint64_t>& rejected);

  // The share that the next step sends, and k for it.
  double density() const;
  std::size_t k() const;
  // (size): what waits. What is lost later, by those who were given what was taken out, is added to it.
  View<std::int64_t> residual() const { return residual_; }
  // (size), or empty without momentum. Whoever saves the residual saves this too.
  View<float> velocity() const { return velocity_; }

  // Where the selection stands: with residual and velocity, all that later steps depend on.
  struct SelectionState {
    std::uint64_t steps = 0;  // so far
    std::int64_t bound = 0;   // the least magnitude that the next step sends; 0: not known
    std::int64_t last = 0;    // that the last one sent
    double trend = 0;         // of its logarithm, for each step
  };
  SelectionState const& selection_state() const { return selection_state_; }
  void set_selection_state(SelectionState const& selection_state) { selection_state_ = selection_state; }

 private:
  struct Found;
  template <class T>
  SelectedUnits step_by(Stream& stream, View<T const> gradient, std::optional<std::uint64_t>& rejected);
  template <class T>
  SelectedUnits step_or_throw(Stream& stream, View<T const> gradient);
  void follow(double too_many);
  template <class T>
  std::size_t add(Stream& stream, View<T const> gradient, std::int64_t bound, Found& found);
  SelectedUnits largest(Stream& stream, std::size_t most, bool bound_was_wrong);
  SelectedUnits take(Array<std::uint32_t> indices, std::size_t count);

  TopKFeedbackOptions options_;
  Array<std::int64_t> residual_;
  Array<float> velocity_;
  SelectionState selection_state_;
};

}  // namespace gpups::kernels
