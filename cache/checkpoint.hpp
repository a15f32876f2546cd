// SPDX-License-Identifier: Apache-2.0
// The rows of a checkpoint: each rank writes its own to one file, and reads all files to keep what is its own.
//
// A file is a list of chunk: table (u32), kind (u32), rows (u64), then the columns keys, lifecycle (2 each) and, for
// rows that exist (kind 0), values (dim each, of the table's type) and state, each without padding, in the machine's
// byte order. Kind 1 are rows that wait for admission. A table number of 2^32 - 1 ends the file.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "cache/checksummed_file.hpp"
#include "cache/manifest.hpp"
#include "cache/table_shard.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

FileChecksum write_rows(Stream& stream, TableShards const& tables, std::filesystem::path const& path);

// Adds the rows of the file whose home is `me`. REQUIRES: the file is verified and the tables are the manifest's.
void read_rows(Stream& stream, TableShards& tables, std::filesystem::path const& path, Rank me, int ranks);

std::vector<Blob> read_blobs_of(std::filesystem::path const& folder, Manifest const& manifest);

}  // namespace gpups::cache
