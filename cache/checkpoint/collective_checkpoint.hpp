// SPDX-License-Identifier: Apache-2.0
// Store::save(), Store::restore() and Store::export_rows(), which all ranks do together.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "cache/protocol/engine.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

// Writes a checkpoint below `folder`; the blobs are those of rank 0. If any rank fails, all ranks throw its error, and
// the previous checkpoint stays valid. Blocks until all ranks are done. Collective, between steps.
void wait_save(Engine& engine, std::filesystem::path const& folder, std::span<Blob const> blobs, Clock clock,
               std::uint64_t seed);

// Loads a checkpoint into empty tables and returns its blobs. If any rank finds a missing, changed or unsuitable file,
// all ranks throw its error before any row has changed. Blocks until all ranks are done. Collective, before the first
// prepare().
std::vector<Blob> wait_restore(Engine& engine, std::filesystem::path const& folder, std::uint64_t seed);

// Exports all tables to `folder`. If any rank fails, all ranks throw its error, and no folder is left. Blocks until all
// ranks are done. Collective, between steps.
void wait_export(Engine& engine, std::filesystem::path const& folder, ExportFormat format);

}  // namespace gpups::cache
