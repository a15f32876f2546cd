// SPDX-License-Identifier: Apache-2.0
// The manifest of a checkpoint: options of the store, and names and checksums of all files. It is written last, so a
// folder with a manifest has a complete checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cache/files/checksummed_file.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// The contents of a manifest.
struct Manifest {
  struct Table {
    std::string name;
    std::uint64_t dim = 0;
    std::uint64_t state_columns = 0;
    std::string initial;    // kind and scale of the initializer
    std::string optimizer;  // kind of the optimizer
    int grid_log2 = 0;
    std::uint32_t admission_count = 1;
    std::string value_type;
    bool operator==(Table const&) const = default;
  };
  struct NamedBlob {
    std::string name;
    FileChecksum file;
  };

  Clock clock{};
  std::uint64_t seed = 0;
  std::string folder;  // subfolder of the checkpoint's folder with all files
  std::vector<Table> tables;
  std::vector<FileChecksum> rows;
  std::vector<FileChecksum> residuals;  // files of the ranks that have residuals or mirrors
  std::vector<FileChecksum> placement;  // files of the homes from which rows are away
  std::vector<NamedBlob> blobs;
};

// Returns the options of a table that a checkpoint must match.
Manifest::Table describe(TableOptions const& options);

// Throws Error with the first difference between a checkpoint and a store.
void require_same(Manifest const& manifest, std::uint64_t seed, std::vector<Manifest::Table> const& tables);

// Reads folder/manifest.json. Throws Error if it is missing, invalid, or of another version.
Manifest read_manifest(std::filesystem::path const& folder);
// Marks a folder without a complete checkpoint, in which the first save begins. Until write_manifest() replaces the
// mark by the manifest, in one step, the folder has none. Throws Error.
void mark_unfinished(std::filesystem::path const& folder);
// Removes the mark.
void remove_unfinished_mark(std::filesystem::path const& folder);
// Replaces folder/manifest.json atomically. Throws Error.
void write_manifest(std::filesystem::path const& folder, Manifest const& manifest);

// Returns true if the text is valid UTF-8, which JSON needs.
bool is_utf8(std::string const& text);

}  // namespace gpups::cache
