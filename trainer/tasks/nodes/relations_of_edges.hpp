// SPDX-License-Identifier: Apache-2.0
// Finds edges with a relation between their nodes, as in the format SIF of Cytoscape: read as edges, the relation would
// be a node, and the second node a weight.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// Throws Error if a file is SIF by its name, and no setting names its columns.
void require_no_sif(std::filesystem::path const& path, TableSettings const& settings);

// Throws Error if a file is SIF by its name, and lines have several nodes after the relation.
void require_one_target(std::filesystem::path const& path, TableLayout const& layout);

// Throws Error if the second field of a file's first rows is a relation: text with few values between two columns of
// whole numbers. path: for messages.
void require_no_relations(std::span<std::vector<std::string> const> rows, std::string_view path);

}  // namespace gpups::trainer
