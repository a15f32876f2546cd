// SPDX-License-Identifier: Apache-2.0
// The file of a checkpoint with the rows of one home that are away from it.
#pragma once

#include <filesystem>
#include <vector>

#include "cache/files/checksummed_file.hpp"
#include "gpups/placement.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

struct PlacedRow {
  TableId table{};
  Key key{};
  Rank owner{};
  PlacementReason reason{};
  Clock since{};
};

// Writes a new file. Throws Error.
FileChecksum write_placement(std::vector<PlacedRow> const& rows, std::filesystem::path const& path);
// Reads a file. tables: number of tables. Throws Error for an invalid file. REQUIRES: its checksum is verified.
std::vector<PlacedRow> read_placement(std::filesystem::path const& path, std::size_t tables);

}  // namespace gpups::cache
