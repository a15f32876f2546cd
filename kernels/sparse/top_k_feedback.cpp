// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/top_k_feedback.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "gpups/stream.hpp"
#include "kernels/base/assert.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"
#include "kernels/sparse/add_to_residual.hpp"
#include "kernels/sparse/top_k.hpp"

namespace gpups::kernels {
namespace {

std::int64_t times_exp(std::int64_t bound, double exponent) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(bound) * std::exp(exponent)));
}

}  // namespace

TopKFeedback::TopKFeedback(std::uint64_t size, TopKFeedbackOptions const& options)
    : options_(options), residual_(Device::host(), size), velocity_(Device::host(), options.momentum != 0 ? size : 0) {
  GPUPS_ASSERT(size < 0xFFFFFFFF);
  GPUPS_REQUIRE(options.density > 0 && options.density <= 1 && options.initial_density >= options.density &&
                    options.initial_density <= 1,
                "the density is {} and the initial density {} (fractions of the gradient's elements, "
                "between which the density falls in the first steps): use 0 < density <= initial_density <= 1",
                options.density, options.initial_density);
  GPUPS_REQUIRE(options.momentum >= 0 && options.momentum < 1,
                "the momentum is {} (velocities would grow without limit): use a number from 0 to below 1",
                options.momentum);
  GPUPS_REQUIRE(options.exact_every > 0,
                "exact_every is 0 (it is a number of steps): use 1 to select exactly in every step");
  if (size > 0) std::memset(residual_.data(), 0, residual_.bytes());
  if (!velocity_.empty()) std::memset(velocity_.data(), 0, velocity_.bytes());
}

double TopKFeedback::density() const {
  if (selection_state_.steps >= options_.warmup_steps) return options_.density;
  double const share = static_cast<double>(selection_state_.steps) / static_cast<double>(options_.warmup_steps);
  return options_.initial_density * std::pow(options_.density / options_.initial_density, share);
}
std::size_t TopKFeedback::k() const {
  return static_cast<std::size_t>(std::ceil(density() * static_cast<double>(residual_.size())));
}

TopKFeedback::SelectedUnits TopKFeedback::step(Stream& stream, View<float const> gradient) {
  return step_or_throw(stream, gradient);
}
TopKFeedback::SelectedUnits TopKFeedback::step(Stream& stream, View<std::int64_t const> gradient) {
  return step_or_throw(stream, gradient);
}
TopKFeedback::SelectedUnits TopKFeedback::step(Stream& stream, View<std::int64_t const> gradient,
                                               std::optional<std::uint64_t>& rejected) {
  return step_by(stream, gradient, rejected);
}

template <class T>
TopKFeedback::SelectedUnits TopKFeedback::step_or_throw(Stream& stream, View<T const> gradient) {
  std::optional<std::uint64_t> rejected;
  SelectedUnits chosen = step_by(stream, gradient, rejected);
  GPUPS_REQUIRE(!rejected,
                "a gradient is not finite or {} units of 2^{} or more (their sums would exceed 64 bits): lower the "
                "learning rate, or use a coarser grid",
                kGradientUnitsMost, options_.grid_log2);
  return chosen;
}

template <class T>
TopKFeedback::SelectedUnits TopKFeedback::step_by(Stream& stream, View<T const> gradient,
                                                  std::optional<std::uint64_t>& rejected) {
  GPUPS_ASSERT(stream.device().is_host() && gradient.size() == residual_.size());
  std::size_t const most = k();
  std::int64_t const bound = selection_state_.steps % options_.exact_every == 0 ? 0 : selection_state_.bound;
  LargeElements found(residual_.size(), bound == 0 ? 0 : 2 * most);
  std::size_t const at = wait_add_to_residual<T>(
      stream, {gradient, velocity_, residual_, options_.momentum, std::ldexp(1.0, -options_.grid_log2), bound, &found});
  if (at < residual_.size()) {
    rejected = at;
    return {};
  }
  ++selection_state_.steps;
  std::size_t const count = found.count();
  if (bound == 0 || count > 2 * most || 2 * count < most) return largest(stream, most, bound != 0);
  follow(static_cast<double>(count) / static_cast<double>(most));
  return take(found.in_order(), count);
}

// Residuals grow while training begins, so the threshold also has a trend. With residuals of normally distributed
// gradients, larger factors oscillate, and smaller factors take longer to find the threshold.
void TopKFeedback::follow(double too_many) {
  double const error = std::log(too_many);
  selection_state_.trend = .8 * selection_state_.trend + .02 * error;
  selection_state_.last = selection_state_.bound;
  selection_state_.bound = times_exp(selection_state_.bound, .05 * error + selection_state_.trend);
}

TopKFeedback::SelectedUnits TopKFeedback::largest(Stream& stream, std::size_t most, bool bound_was_wrong) {
  std::size_t const n = residual_.size();
  Array<float> const magnitudes(Device::host(), n), kept(Device::host(), most);
  host_exec(stream).arena->blocks(residual_blocks(n), [&](std::size_t b) {
    for (std::size_t i = b * kResidualBlock; i < std::min(n, (b + 1) * kResidualBlock); ++i) {
      magnitudes[i] = static_cast<float>(std::abs(residual_[i]));
    }
  });
  Array<std::uint32_t> indices(Device::host(), most);
  TopKResult const top = wait_top_k(stream, {.values = magnitudes, .k = most, .indices = indices, .kept = kept});
  if (top.count == 0) {
    selection_state_.bound = 0;
  } else {
    auto const threshold = std::max<std::int64_t>(1, static_cast<std::int64_t>(top.threshold));
    double const growth = std::log(static_cast<double>(threshold) /
                                   static_cast<double>(std::max<std::int64_t>(1, selection_state_.last)));
    if (bound_was_wrong) selection_state_.trend = .5 * std::clamp(growth, -.5, .5);
    selection_state_.last = threshold;
    selection_state_.bound = times_exp(threshold, selection_state_.trend);
  }
  return take(std::move(indices), top.count);
}

TopKFeedback::SelectedUnits TopKFeedback::take(Array<std::uint32_t> indices, std::size_t count) {
  SelectedUnits chosen{std::move(indices), Array<std::int64_t>(Device::host(), count)};
  if (chosen.indices.size() != count) {
    Array<std::uint32_t> fewer(Device::host(), count);
    std::copy_n(chosen.indices.data(), count, fewer.data());
    chosen.indices = std::move(fewer);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t const at = chosen.indices[i];
    chosen.units[i] = std::exchange(residual_[at], 0);
    if (!velocity_.empty()) velocity_[at] = 0;
  }
  return chosen;
}

}  // namespace gpups::kernels
