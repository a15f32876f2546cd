// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint that hold rows. Each rank writes its rows to one file. To restore, each rank reads all
// files and keeps the rows that it owns.
//
// A file is a list of chunks. A chunk has: table (u32), kind (u32), rows (u64), keys (u64 each) and lifecycle words (2
// x u32 each). A chunk of kind 0 has rows that exist, and continues with values (dim each, of the table's data type)
// and optimizer state (f32). A chunk of kind 1 has rows that wait for admission. Columns have no padding; the byte
// order is the machine's. The table number 2^32 - 1 ends the file.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "cache/files/checksummed_file.hpp"
#include "cache/files/manifest.hpp"
#include "cache/placement/owner_directory.hpp"
#include "cache/rows/table_shard.hpp"
#include "gpups/array.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

// Writes all rows of this rank to a new file, with at most 16,384 rows in memory at a time. Waits for `stream`. Throws
// Error if the file cannot be written.
FileChecksum write_rows(Stream& stream, TableShards const& tables, std::filesystem::path const& path);

// Adds those rows of the file to `tables` that this rank owns. Waits for `stream`. Throws Error for an invalid file.
// REQUIRES: the file's checksum is verified, and the tables have the options of the manifest.
void read_rows(Stream& stream, TableShards& tables, std::filesystem::path const& path, OwnsRow const& owns);

// Reads the blobs of a manifest, and verifies their checksums. Throws Error.
std::vector<Blob> read_blobs_of(std::filesystem::path const& folder, Manifest const& manifest);

// Returns the elements of a matrix on the host, (rows, columns), without padding. Waits for `stream`.
inline std::vector<float> wait_unpadded(Stream& stream, MatrixView<float const> from) {
  auto const padded = to_host(stream, from.flat());
  std::vector<float> values(from.rows() * from.columns());
  for (std::size_t i = 0; i < from.rows(); ++i) {
    std::copy_n(padded.data() + i * from.stride(), from.columns(), values.data() + i * from.columns());
  }
  return values;
}

}  // namespace gpups::cache
