// SPDX-License-Identifier: Apache-2.0
// What a run has learnt, as files for other programs.
#pragma once

#include <filesystem>
#include <vector>

#include "gpups/store.hpp"
#include "trainer/config.hpp"

namespace gpups::trainer {

// Writes the rows of a run's checkpoint below rows/ of a new folder, and what is needed to use them: of a click-through
// model its layers (see SavedClicks::write), of a knowledge graph the name behind each key, in entities.tsv and
// relations.tsv. Throws Error.
void export_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                std::filesystem::path const& folder, ExportFormat format);

}  // namespace gpups::trainer
