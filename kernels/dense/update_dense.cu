// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/update_dense.hpp"

#include <cmath>

#include "kernels/assert.hpp"
#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Parameters of a team of lanes.
inline constexpr std::size_t kTeamParameters = 256;

// What is the same for all parameters of a step.
struct StepFactors {
  double unit;                        // of a sum: the gradient in these
  float decay;                        // of the value, before the step
  float rate;                         // Adam: with the first moment's bias corrected
  float first_weight, second_weight;  // Adam: 1 - beta
  float second_scale;                 // Adam: corrects the second moment's bias
};

inline StepFactors factors_of(UpdateDense const& u) {
  DenseOptimizer const& o = u.optimizer;
  StepFactors f{.unit = std::ldexp(u.scale, u.grid_log2), .decay = 1.0F - u.rate * o.weight_decay, .rate = u.rate};
  if (o.kind != DenseOptimizer::Kind::kAdam) return f;
  auto const step = static_cast<double>(u.step);
  f.rate = static_cast<float>(u.rate / (1 - std::pow(static_cast<double>(o.beta1), step)));
  f.second_scale = static_cast<float>(1 / (1 - std::pow(static_cast<double>(o.beta2), step)));
  f.first_weight = static_cast<float>(1 - static_cast<double>(o.beta1));
  f.second_weight = static_cast<float>(1 - static_cast<double>(o.beta2));
  return f;
}

// 1 where x is not finite, else 0: for counting in sums.
GPUPS_FN inline float not_finite(float x) { return x - x == 0 ? 0.0F : 1.0F; }

struct SgdStep {
  GPUPS_FN static float apply(UpdateDense const& u, StepFactors const& f, std::size_t j, float g) {
    return not_finite(u.values[j] = u.values[j] * f.decay - f.rate * g);
  }
};
struct MomentumStep {
  GPUPS_FN static float apply(UpdateDense const& u, StepFactors const& f, std::size_t j, float g) {
    float const v = u.optimizer.momentum * u.first[j] + g;
    u.first[j] = v;
    return not_finite(u.values[j] = u.values[j] * f.decay - f.rate * v);
  }
};
struct AdagradStep {
  GPUPS_FN static float apply(UpdateDense const& u, StepFactors const& f, std::size_t j, float g) {
    float const s = u.second[j] + g * g;
    u.second[j] = s;
    u.values[j] = u.values[j] * f.decay - f.rate * g / (std::sqrt(s) + u.optimizer.epsilon);
    return not_finite(s) + not_finite(u.values[j]);
  }
};
struct AdamStep {
  GPUPS_FN static float apply(UpdateDense const& u, StepFactors const& f, std::size_t j, float g) {
    float const first = u.optimizer.beta1 * u.first[j] + f.first_weight * g;
    float const second = u.optimizer.beta2 * u.second[j] + f.second_weight * (g * g);
    u.first[j] = first;
    u.second[j] = second;
    u.values[j] = u.values[j] * f.decay - f.rate * first / (std::sqrt(second * f.second_scale) + u.optimizer.epsilon);
    return not_finite(second) + not_finite(u.values[j]);
  }
};

GPUPS_FN inline bool is_fault(UpdateDense const& u, std::size_t j) {
  return not_finite(u.values[j]) + (u.first.empty() ? 0.0F : not_finite(u.first[j])) +
             (u.second.empty() ? 0.0F : not_finite(u.second[j])) >
         0;
}

template <class Step, Space S>
void update(Exec<S> ex, UpdateDense const& u) {
  StepFactors const factors = factors_of(u);
  std::size_t const n = u.values.size();
  each_row(ex, (n + kTeamParameters - 1) / kTeamParameters,
           [u, factors, n] GPUPS_FN(std::size_t team, NativeLanes lanes) {
             std::size_t const first = team * kTeamParameters;
             std::size_t const count = n - first < kTeamParameters ? n - first : kTeamParameters;
             float const faults = lanes.sum(count, [&](std::size_t k) {
               auto const g = static_cast<float>(static_cast<double>(u.sums[first + k]) * factors.unit);
               return Step::apply(u, factors, first + k, g);
             });
             if (faults == 0) return;
             lanes.sync();
             for (std::size_t j = first; lanes.first() && j < first + count; ++j) {
               if (is_fault(u, j)) atomic_min(u.fault.data(), static_cast<std::uint32_t>(j));
             }
           });
}

template <Space S>
void run(Exec<S> ex, UpdateDense const& u) {
  [[maybe_unused]] std::size_t const n = u.values.size();
  GPUPS_ASSERT(u.sums.size() == n && u.fault.size() == 1 && u.step >= 1);
  GPUPS_ASSERT(u.first.size() == (has_first(u.optimizer) ? n : 0));
  GPUPS_ASSERT(u.second.size() == (has_second(u.optimizer) ? n : 0));
  switch (u.optimizer.kind) {
    case DenseOptimizer::Kind::kSgd:
      return has_first(u.optimizer) ? update<MomentumStep>(ex, u) : update<SgdStep>(ex, u);
    case DenseOptimizer::Kind::kAdagrad:
      return update<AdagradStep>(ex, u);
    case DenseOptimizer::Kind::kAdam:
      return update<AdamStep>(ex, u);
  }
}

template <Space S>
void run(Exec<S> ex, InitDenseState const& u) {
  float const accumulator = u.optimizer.kind == DenseOptimizer::Kind::kAdagrad ? u.optimizer.initial_accumulator : 0.0F;
  each(ex, u.first.size(), [u] GPUPS_FN(std::size_t j) { u.first[j] = 0.0F; });
  each(ex, u.second.size(), [u, accumulator] GPUPS_FN(std::size_t j) { u.second[j] = accumulator; });
}

GPUPS_KERNEL(update_dense, UpdateDense)
GPUPS_KERNEL(init_dense_state, InitDenseState)

}  // namespace gpups::kernels
