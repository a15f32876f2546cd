// SPDX-License-Identifier: Apache-2.0
// Exports a trained model as files for other programs.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer {

// Returns the format with a name: npy, flat, word2vec or word2vec-binary. Throws Error for another name.
ModelFormat model_format(std::string_view name);

// Writes the rows of a run's checkpoint to `folder`/rows, and other files that a program needs to use them: the dense
// layers of a click-through model (see SavedClicks::write), the range of ratings (see SavedRatings::write), or the
// names of a knowledge graph's keys, in entities.tsv, relations.tsv and inverse_relations.tsv, of a text's words, in
// words.tsv, of a network's nodes, in nodes.tsv, or of items and users, in items.tsv and users.tsv. The formats of
// word2vec have one file instead, vectors.txt or vectors.bin. run: folder of the run. folder: must not exist, or be
// empty. Throws Error if the run has no valid checkpoint, the model has no vectors for word2vec, or the folder cannot
// be written.
void export_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                std::filesystem::path const& folder, ModelFormat format, TaskKinds kinds = task_kinds());

}  // namespace gpups::trainer
