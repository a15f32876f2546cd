// SPDX-License-Identifier: Apache-2.0
// The manifest of a checkpoint: what it holds, and the seals of its files. It is put in place last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cache/checksummed_file.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

struct Manifest {
  struct Table {
    std::string name;
    std::uint64_t dim = 0;
    std::uint64_t state_columns = 0;
    std::string initial;    // description of how rows begin
    std::string optimizer;  // its kind
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
  std::string folder;  // of the files, below the checkpoint's folder
  std::vector<Table> tables;
  std::vector<FileChecksum> rows;
  std::vector<FileChecksum> residuals;  // of ranks that hold gradients back, or send changes of rows
  std::vector<NamedBlob> blobs;
};

Manifest::Table describe(TableOptions const& options);

// Throws Error naming the first thing that differs between a checkpoint and a store.
void require_same(Manifest const& manifest, std::uint64_t seed, std::vector<Manifest::Table> const& tables);

// Reads folder/manifest.json. Throws Error where there is none, or it is not one.
Manifest read_manifest(std::filesystem::path const& folder);
void write_manifest(std::filesystem::path const& folder, Manifest const& manifest);

// Whether JSON can hold a text.
bool is_utf8(std::string const& text);

}  // namespace gpups::cache
