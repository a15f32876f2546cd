// SPDX-License-Identifier: Apache-2.0
// Training on the stream.
#pragma once

#include <cstdint>
#include <filesystem>

#include "gpups/gpups.hpp"

// Trains one rank up to step `steps` of the stream, from the checkpoint in `folder` if there is one, and saves a
// checkpoint there. SIGINT and SIGTERM end the training early, with a checkpoint. Returns false on rank 0, after
// printing why, if the predictions were not good enough, or if there were too many rows.
bool train(gpups::Group const& group, std::filesystem::path const& folder, std::int64_t steps);
