// SPDX-License-Identifier: Apache-2.0
// Exports a trained model as files for other programs.
#pragma once

#include <filesystem>
#include <vector>

#include "gpups/store.hpp"
#include "trainer/config.hpp"

namespace gpups::trainer {

// Writes the rows of a run's checkpoint to `folder`/rows, and other files that a program needs to use them: the dense
// layers of a click-through model (see SavedClicks::write), the range of ratings (see SavedRatings::write), or the
// names of a knowledge graph's keys, in entities.tsv and relations.tsv, or of a text's words, in words.tsv. run: folder
// of the run. folder: must not exist, or be empty. Throws Error if the run has no valid checkpoint or the folder cannot
// be written.
void export_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                std::filesystem::path const& folder, ExportFormat format);

}  // namespace gpups::trainer
