// SPDX-License-Identifier: Apache-2.0
// Where a run is, beside its tables: what a checkpoint needs to go on with the same bits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"

namespace gpups::trainer {

struct TrainerState {
  std::int64_t clock = 0;           // steps trained; the position in the data follows from it
  std::uint32_t microbatches = 0;   // V
  std::int64_t schedule_steps = 0;  // where the learning rate's schedule ends
  std::uint64_t data_digest = 0;
  double best_valid = 0;  // the best quality of a validation
  std::int64_t validations_since_best = 0;
  double train_seconds = 0;
  std::int64_t samples = 0;

  bool operator==(TrainerState const&) const = default;
};

// What the trainer adds to a checkpoint: the configuration and the cursor.
std::vector<Blob> to_blobs(Config const& config, TrainerState const& state);

struct SavedState {
  Config config;
  TrainerState state;
};
// Throws Error where a checkpoint was not made by this trainer, naming `folder`.
SavedState from_blobs(std::span<Blob const> blobs, std::filesystem::path const& folder);

// Throws Error where a run with this configuration, data and number of ranks cannot go on from `saved`, naming the
// first key that differs and both values.
void require_same_run(SavedState const& saved, Config const& now, std::uint64_t data_digest,
                      std::filesystem::path const& folder);

}  // namespace gpups::trainer
