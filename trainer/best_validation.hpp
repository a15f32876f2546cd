// SPDX-License-Identifier: Apache-2.0
// The best validation of a run so far.
#pragma once

#include <cstdint>
#include <string>

namespace gpups::trainer {

// A part of TrainerState.
struct BestValidation {
  std::int64_t step = 0;  // number of steps before it; 0: there was none, or its tables are not kept
  double quality = 0;     // Metrics::quality
  std::int64_t validations_since = 0;
  std::string summary;    // the entry of summary.json
  std::string test_text;  // Metrics::text of the test split at this step

  bool operator==(BestValidation const&) const = default;
};

}  // namespace gpups::trainer
