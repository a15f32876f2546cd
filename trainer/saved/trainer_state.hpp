// SPDX-License-Identifier: Apache-2.0
// The state of a run other than tables and dense layers. With it a resumed run gets the same bits as one that never
// stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"

namespace gpups::trainer {

// The best validation of a run so far.
struct BestValidation {
  double quality = 0;  // Metrics::quality
  std::int64_t validations_since = 0;
  // Of the validation whose model is kept: the number of steps before it (0: no model is kept), its quality, its entry
  // of summary.json, and Metrics::text of the test split.
  std::int64_t step = 0;
  double kept_quality = 0;
  nlohmann::json summary{};
  std::string test_text{};
  std::int64_t validations = 0;  // since the first one whose model was kept
  bool any_differs = false;      // in quality from the others of them

  bool operator==(BestValidation const&) const = default;
};

// A blob of the checkpoint.
struct TrainerState {
  std::int64_t clock = 0;           // number of completed steps, which determines the position in the data
  int ranks = 0;                    // that saved the state; 0: unknown, because an older version saved it
  std::uint32_t microbatches = 0;   // of a global batch
  std::int64_t schedule_steps = 0;  // end of the learning rate's schedule
  std::uint64_t data_digest = 0;
  BestValidation best;
  nlohmann::json progressive{};  // metrics of the first epoch; null: there are none
  double train_seconds = 0;
  std::int64_t samples = 0;
  std::optional<double> loss{};  // of the last report; nothing if there was none, or if another version saved the state
  bool validation_due = false;   // a signal came during the validation after the last step

  bool operator==(TrainerState const&) const = default;
};

// Returns the trainer's blobs of a checkpoint: the configuration and the trainer state.
std::vector<Blob> to_blobs(Config const& config, TrainerState const& state);

// The blobs of a checkpoint that to_blobs() returns.
struct SavedState {
  Config config;
  TrainerState state;
};
// Reads these blobs. folder: of the checkpoint, for messages. kinds: of tasks; see parse_config(). Throws Error if
// blobs are missing or invalid.
SavedState from_blobs(std::span<Blob const> blobs, std::filesystem::path const& folder, TaskKinds kinds);

// Throws Error if a run with this configuration and data cannot resume from `saved`. The error contains the first key
// that differs, and both values.
void require_same_run(SavedState const& saved, Config const& now, std::uint64_t data_digest,
                      std::filesystem::path const& folder);

}  // namespace gpups::trainer
