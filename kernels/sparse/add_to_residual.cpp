// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/add_to_residual.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {
namespace {

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
std::size_t first_rejected(T const* values, double per_unit, std::size_t n) {
  auto const fits = [per_unit](T value) {
    return std::abs(static_cast<double>(value) * per_unit) < kGradientUnitsMost;
  };
  int wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong |= fits(values[i]) ? 0 : 1;
  if (wrong == 0) return n;
  return static_cast<std::size_t>(std::find_if_not(values, values + n, fits) - values);
}

// Adds the gradient of a block and returns n; or adds nothing and returns the first element that is out of range.
template <class T>
std::size_t add_block(T const* gradient, float* velocity, float momentum, double per_unit, std::int64_t* residual,
                      std::size_t n) {
  GPUPS_ASSERT(n > 0 && n <= kResidualBlock);
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (velocity == nullptr) {
      std::size_t const rejected = first_rejected(gradient, 1, n);
      for (std::size_t i = 0; rejected == n && i < n; ++i) residual[i] += gradient[i];
      return rejected;
    }
  }
  float sent[kResidualBlock];
  for (std::size_t i = 0; i < n; ++i) {
    float const term = as_float(gradient[i], per_unit);
    sent[i] = velocity == nullptr ? term : momentum * velocity[i] + term;
  }
  if (std::size_t const rejected = first_rejected(sent, per_unit, n); rejected < n) return rejected;
  if (velocity != nullptr) std::memcpy(velocity, sent, n * sizeof *sent);
  for (std::size_t i = 0; i < n; ++i) {
    residual[i] += static_cast<std::int64_t>(std::nearbyint(static_cast<double>(sent[i]) * per_unit));
  }
  return n;
}

}  // namespace

void LargeElements::add(std::size_t block, std::uint32_t const* places, std::size_t some) {
  std::size_t const at = count_.fetch_add(some, std::memory_order_relaxed);
  if (at + some > list_.size()) return;
  auto const base = static_cast<std::uint32_t>(block * kResidualBlock);
  for (std::size_t i = 0; i < some; ++i) list_[at + i] = base + places[i];
  pieces_[block] = {at, some};
}

Array<std::uint32_t> LargeElements::in_order() const {
  Array<std::uint32_t> all(Device::host(), count_);
  std::size_t at = 0;
  for (Piece const piece : pieces_) {
    std::copy_n(list_.data() + piece.first, piece.count, all.data() + at);
    at += piece.count;
  }
  return all;
}

template <class T>
std::size_t run(HostExec ex, AddToResidual<T> const& a) {
  std::size_t const n = a.residual.size();
  GPUPS_ASSERT(a.gradient.size() == n);
  std::vector<std::size_t> rejected(residual_blocks(n));
  ex.arena->blocks(rejected.size(), [&](std::size_t b) {
    std::size_t const first = b * kResidualBlock, count = std::min(kResidualBlock, n - first);
    float* const velocity = a.velocity.empty() ? nullptr : a.velocity.data() + first;
    std::int64_t* const residual = a.residual.data() + first;
    std::size_t const at = add_block(a.gradient.data() + first, velocity, a.momentum, a.per_unit, residual, count);
    rejected[b] = at < count ? first + at : n;
    if (a.bound == 0) return;
    std::uint32_t places[kResidualBlock + 1];
    a.found->add(b, places, find(residual, count, a.bound, places));
  });
  return rejected.empty() ? n : *std::min_element(rejected.begin(), rejected.end());
}

template <class T>
std::size_t wait_add_to_residual(Stream& stream, AddToResidual<T> const& arguments) {
  return run_at_host_level<std::size_t>(host_exec(stream), arguments);
}
GPUPS_HOST_KERNEL_OF(std::size_t, wait_add_to_residual, AddToResidual<float>)
GPUPS_HOST_KERNEL_OF(std::size_t, wait_add_to_residual, AddToResidual<std::int64_t>)

}  // namespace gpups::kernels
