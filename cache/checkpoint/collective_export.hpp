// SPDX-License-Identifier: Apache-2.0
// Store::export_rows(), which all ranks do together: rank 0 creates the files, and each rank writes its rows into them.
#pragma once

#include <filesystem>

#include "cache/protocol/engine.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

// Exports all tables to `folder`. If any rank fails, all ranks throw its error, and no folder is left. Blocks until all
// ranks are done. Collective, between steps.
void wait_export(Engine& engine, std::filesystem::path const& folder, ExportFormat format);

}  // namespace gpups::cache
