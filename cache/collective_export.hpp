// SPDX-License-Identifier: Apache-2.0
// Exporting by all ranks together: rank 0 makes the files, each rank writes its rows to its place in them.
#pragma once

#include <filesystem>

#include "cache/engine.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

// Collective, between steps. On an error on any rank all throw it, and there is no folder.
void wait_export(Engine& engine, std::filesystem::path const& folder, ExportFormat format);

}  // namespace gpups::cache
