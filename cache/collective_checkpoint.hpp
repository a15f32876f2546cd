// SPDX-License-Identifier: Apache-2.0
// Saving and restoring by all ranks together: each says what went wrong with its share, and all agree.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "cache/engine.hpp"

namespace gpups::cache {

// Collective, between steps. On an error on any rank all throw it, and the previous checkpoint stays.
void wait_save(Engine& engine, std::filesystem::path const& folder, std::span<Blob const> blobs, Clock clock,
               std::uint64_t seed);

// Collective, before anything is prepared. On an error on any rank all throw it, and no row has changed.
std::vector<Blob> wait_restore(Engine& engine, std::filesystem::path const& folder, std::uint64_t seed);

}  // namespace gpups::cache
