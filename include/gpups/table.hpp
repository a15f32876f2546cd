// SPDX-License-Identifier: Apache-2.0
// What a table of embedding rows is: its width, how rows begin, and how gradients change them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpups/types.hpp"

namespace gpups {

// The value of a row that no batch has named yet. It depends on the store's seed, the table's name, the key and the
// column alone, so it is the same on every rank, device and run.
struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal };

  Kind kind = Kind::kUniform;
  float scale = 0.05F;  // kConstant: the value; kUniform: in [-scale, scale); kNormal: standard deviation
};

// How the summed gradient of a step changes a row. Rows that no batch of the step names do not change at all (lazy),
// and a row is updated once in each step that names it.
struct Optimizer {
  enum class Kind {
    kSgd,             // value -= rate * g
    kAdagrad,         // s += g * g, value -= rate * g / (sqrt(s) + epsilon); s has one float per column
    kRowwiseAdagrad,  // s += mean of g * g over the columns, then as above; s is one float per row
  };

  Kind kind = Kind::kRowwiseAdagrad;
  float learning_rate = 0.1F;
  float epsilon = 1e-8F;
  float initial_accumulator = 0.0F;  // what s is in a new row
  float l2 = 0.0F;                   // l2 * value is added to the gradient g, after clipping
  float clip_norm = 0.0F;            // 0: off; else gradients of a row are scaled down to this Euclidean norm
};

// The learning rate as a pure function of the clock: what the optimizer's rate is multiplied with.
struct Schedule {
  enum class Kind { kConstant, kLinear, kCosine };

  Kind kind = Kind::kConstant;
  std::int64_t warmup_steps = 0;  // from 0 to 1, linearly
  std::int64_t total_steps = 0;   // kLinear, kCosine: where the factor reaches `floor`
  float floor = 0.0F;
};

// The factor at a step; in [0, 1].
float learning_rate_factor(Schedule const& schedule, Clock clock);

struct TableOptions {
  std::string name;     // unique in the store; part of the rows' seeds and of checkpoints
  std::size_t dim = 0;  // values in a row, 1 .. 65,536
  Initializer initializer{};
  Optimizer optimizer{};
  Schedule schedule{};
  // Gradients are summed as 64-bit integers in units of 2^grid_log2 of the *summed* loss's gradient; the owner applies
  // the mean's 1/batch. -30 keeps nine decimals and overflows only beyond 8e9.
  int grid_log2 = -30;
  std::size_t expected_rows = 0;  // over all ranks; a hint that saves growing
  // A row begins to exist in the step of its n-th sighting, 1 .. 2^31 - 1. Sightings are entries of global batches, so
  // one step may bring several. Until then a key reads as its initial value and its gradients are dropped.
  std::uint32_t admit_at = 1;
};

}  // namespace gpups
