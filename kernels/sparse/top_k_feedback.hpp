// SPDX-License-Identifier: Apache-2.0
// The selection of top-k SGD with error feedback for a dense gradient: each step selects the elements of largest
// magnitude, which the caller sends, and all others stay in a residual. Uses whole units of a grid, so everything
// selected plus the residual equals the sum of the gradients exactly (Alistarh et al., NeurIPS 2018; with momentum
// correction and masking as in Deep Gradient Compression, Lin et al., ICLR 2018, but without its clipping). On the
// host.
#pragma once

#include <cstdint>
#include <optional>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Options of TopKFeedback.
struct TopKFeedbackOptions {
  int grid_log2 = -30;           // a unit is 2^grid_log2
  double density = .001;         // the fraction of the elements to select
  double initial_density = .25;  // in the first warm-up step; falls to `density` during warm-up
  std::uint64_t warmup_steps = 0;
  float momentum = 0;  // if not 0, a velocity is accumulated instead of the gradient, and set to 0 where it is selected
  std::uint64_t exact_every = 128;  // steps between two exact selections
};

// The residual and the selection of one dense gradient. For one thread at a time.
class TopKFeedback {
 public:
  TopKFeedback(std::uint64_t size, TopKFeedbackOptions const& options);

  // Elements of a vector, with ascending indices.
  struct SelectedUnits {
    Array<std::uint32_t> indices;
    Array<std::int64_t> units;
  };
  // Adds the gradient of a step, of floats or of units, and removes the selected elements from the residual: about k.
  // These are the elements above a threshold that follows from earlier steps. The k largest elements are selected
  // exactly if there is no threshold yet, or if it selects less than half or more than twice as many. Throws Error if
  // the gradient is not finite or out of the range of the grid; the residual is then invalid.
  SelectedUnits step(Stream& stream, View<float const> gradient);
  SelectedUnits step(Stream& stream, View<std::int64_t const> gradient);
  // The same without throwing Error: selects nothing in these cases, and sets `rejected` to the first invalid element.
  SelectedUnits step(Stream& stream, View<std::int64_t const> gradient, std::optional<std::uint64_t>& rejected);

  // The fraction that the next step selects, and the number k of its elements.
  double density() const;
  std::size_t k() const;
  // Returns the residual, (size). Callers add to it what selected elements lose later, by rounding or by being dropped.
  View<std::int64_t> residual() const { return residual_; }
  // Returns the velocity, (size), or empty without momentum. It must be saved together with the residual.
  View<float> velocity() const { return velocity_; }

  // The state of the selection. With residual and velocity it determines all later steps.
  struct SelectionState {
    std::uint64_t steps = 0;  // so far
    std::int64_t bound = 0;   // the smallest magnitude that the next step selects; 0: not known
    std::int64_t last = 0;    // the smallest magnitude that the last step selected
    double trend = 0;         // the change of log(bound) per step
  };
  SelectionState const& selection_state() const { return selection_state_; }
  void set_selection_state(SelectionState const& selection_state) { selection_state_ = selection_state; }

 private:
  template <class T>
  SelectedUnits step_by(Stream& stream, View<T const> gradient, std::optional<std::uint64_t>& rejected);
  template <class T>
  SelectedUnits step_or_throw(Stream& stream, View<T const> gradient);
  void follow(double too_many);
  SelectedUnits largest(Stream& stream, std::size_t most, bool bound_was_wrong);
  SelectedUnits take(Array<std::uint32_t> indices, std::size_t count);

  TopKFeedbackOptions options_;
  Array<std::int64_t> residual_;
  Array<float> velocity_;
  SelectionState selection_state_;
};

}  // namespace gpups::kernels
