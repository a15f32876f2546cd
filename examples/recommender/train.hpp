// SPDX-License-Identifier: Apache-2.0
// Training on the stream: what every rank runs.
#pragma once

#include <cstdint>
#include <filesystem>

#include "gpups/gpups.hpp"

// Learns from the stream's first `steps` steps, or from where the checkpoint in `folder` ends, and saves there. SIGINT
// and SIGTERM end it early, with a checkpoint. Returns false on rank 0 where predictions were not as good as they
// should be, or there were too many rows; it says so.
bool train(gpups::Group const& group, std::filesystem::path const& folder, std::int64_t steps);
