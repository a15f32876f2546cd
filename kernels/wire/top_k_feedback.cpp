// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/top_k_feedback.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpups/stream.hpp"
#include "kernels/assert.hpp"
#include "kernels/check.hpp"
#include "kernels/launch.hpp"
#include "kernels/wire/top_k.hpp"

namespace gpups::kernels {
namespace {

constexpr std::size_t kBlock = 8192;  // elements: they stay in a core's caches
// Gradients are below this many units, so that no sum of 100,000 steps leaves 64 bits.
constexpr double kUnitsMost = 0x1p46;

std::size_t blocks_of(std::size_t n) { return (n + kBlock - 1) / kBlock; }

std::int64_t times_exp(std::int64_t bound, double exponent) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(bound) * std::exp(exponent)));
}

// Lists the positions of magnitudes from `bound` on, and returns their number; `to` has room for all. They are few, so
// 16 elements are checked at a time.
std::size_t find(std::int64_t const* units, std::size_t n, std::int64_t bound, std::uint32_t* to) {
  constexpr std::size_t kTogether = 16;
  std::size_t found = 0;
  for (std::size_t first = 0; first < n; first += kTogether) {
    std::size_t const last = std::min(first + kTogether, n);
    std::int64_t largest = 0;
    for (std::size_t i = first; i < last; ++i) largest = std::max(largest, std::abs(units[i]));
    for (std::size_t i = first; i < last && largest >= bound; ++i) {
      to[found] = static_cast<std::uint32_t>(i);
      found += std::abs(units[i]) >= bound ? 1 : 0;
    }
  }
  return found;
}

float as_float(float gradient, double) { return gradient; }
float as_float(std::int64_t units, double per_unit) {
  return static_cast<float>(static_cast<double>(units) / per_unit);  // exact, since per_unit is a power of 2
}

// Returns the first value whose number of units is not below the limit, or NaN; n if there is none.
template <class T>
std::size_t first_refused(T const* values, double per_unit, std::size_t n) {
  auto const fits = [per_unit](T value) { return std::abs(static_cast<double>(value) * per_unit) < kUnitsMost; };
  int wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong |= fits(values[i]) ? 0 : 1;
  if (wrong == 0) return n;
  return static_cast<std::size_t>(std::find_if_not(values, values + n, fits) - values);
}

// Adds the gradient of a block and returns n; or adds nothing and returns the first element that is out of range.
template <class T>
std::size_t add_block(T const* gradient, float* velocity, float momentum, double per_unit, std::int64_t* residual,
                      std::size_t n) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (velocity == nullptr) {
      std::size_t const rejected = first_refused(gradient, 1, n);
      for (std::size_t i = 0; rejected == n && i < n; ++i) residual[i] += gradient[i];
      return rejected;
    }
  }
  float sent[kBlock];
  for (std::size_t i = 0; i < n; ++i) {
    float const term = as_float(gradient[i], per_unit);
    sent[i] = velocity == nullptr ? term : momentum * velocity[i] + term;
  }
  if (std::size_t const rejected = first_refused(sent, per_unit, n); rejected < n) return rejected;
  if (velocity != nullptr) std::memcpy(velocity, sent, n * sizeof *sent);
  for (std::size_t i = 0; i < n; ++i) {
    residual[i] += static_cast<std::int64_t>(std::nearbyint(static_cast<double>(sent[i]) * per_unit));
  }
  return n;
}

}  // namespace

// The positions of elements from the bound on, in pieces: one for each block of the vector.
struct TopKFeedback::Found {
  Found(std::size_t n, std::size_t most) : list(Device::host(), most), pieces(blocks_of(n)) {}
  struct Piece {
    std::size_t first = 0, count = 0;
  };
  Array<std::uint32_t> list;
  std::vector<Piece> pieces;
  std::atomic<std::size_t> count = 0;  // if it exceeds the size of the list, the elements did not fit

  void add(std::size_t block, std::uint32_t const* places, std::size_t some) {
    std::size_t const at = count.fetch_add(some, std::memory_order_relaxed);
    if (at + some > list.size()) return;
    auto const base = static_cast<std::uint32_t>(block * kBlock);
    for (std::size_t i = 0; i < some; ++i) list[at + i] = base + places[i];
    pieces[block] = {at, some};
  }
  Array<std::uint32_t> in_order() const {
    Array<std::uint32_t> all(Device::host(), count);
    std::size_t at = 0;
    for (Piece const piece : pieces) {
      std::copy_n(list.data() + piece.first, piece.count, all.data() + at);
      at += piece.count;
    }
    return all;
  }
};

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
                kUnitsMost, options_.grid_log2);
  return chosen;
}

template <class T>
TopKFeedback::SelectedUnits TopKFeedback::step_by(Stream& stream, View<T const> gradient,
                                                  std::optional<std::uint64_t>& rejected) {
  GPUPS_ASSERT(stream.device().is_host() && gradient.size() == residual_.size());
  std::size_t const most = k();
  std::int64_t const bound = selection_state_.steps % options_.exact_every == 0 ? 0 : selection_state_.bound;
  Found found(residual_.size(), bound == 0 ? 0 : 2 * most);
  if (std::size_t const at = add(stream, gradient, bound, found); at < residual_.size()) {
    rejected = at;
    return {};
  }
  ++selection_state_.steps;
  std::size_t const count = found.count;
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

// Returns the size, or the first element that is rejected.
template <class T>
std::size_t TopKFeedback::add(Stream& stream, View<T const> gradient, std::int64_t bound, Found& found) {
  std::size_t const n = residual_.size();
  double const per_unit = std::ldexp(1.0, -options_.grid_log2);
  std::vector<std::size_t> rejected(blocks_of(n));
  host_exec(stream).arena->blocks(rejected.size(), [&](std::size_t b) {
    std::size_t const first = b * kBlock, count = std::min(kBlock, n - first);
    float* const velocity = velocity_.empty() ? nullptr : velocity_.data() + first;
    std::int64_t* const residual = residual_.data() + first;
    std::size_t const at = add_block(gradient.data() + first, velocity, options_.momentum, per_unit, residual, count);
    rejected[b] = at < count ? first + at : n;
    if (bound == 0) return;
    std::uint32_t places[kBlock + 1];
    found.add(b, places, find(residual, count, bound, places));
  });
  return rejected.empty() ? n : *std::min_element(rejected.begin(), rejected.end());
}

TopKFeedback::SelectedUnits TopKFeedback::largest(Stream& stream, std::size_t most, bool bound_was_wrong) {
  std::size_t const n = residual_.size();
  Array<float> const magnitudes(Device::host(), n), kept(Device::host(), most);
  host_exec(stream).arena->blocks(blocks_of(n), [&](std::size_t b) {
    for (std::size_t i = b * kBlock; i < std::min(n, (b + 1) * kBlock); ++i) {
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
