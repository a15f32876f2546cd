// SPDX-License-Identifier: Apache-2.0
// Checkpoints and exported arrays without a Store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gpups/compiler.hpp"

namespace gpups {

// Named bytes of an application in a checkpoint, for example a dense layer, the position in the data or a
// configuration. Names are UTF-8, not empty, and unique in a checkpoint.
struct Blob {
  std::string name;
  std::string bytes;
};

// The file format of Store::export_rows(). kNpy: TABLE.keys.npy and TABLE.values.npy, in NumPy's format. kFlat:
// TABLE.keys.bin and TABLE.values.bin, without headers, and TABLE.json with types, shapes and byte order.
enum class ExportFormat { kNpy, kFlat };

// Returns the blobs of a checkpoint without a Store, for example to read a configuration before tables are added.
// Throws Error if `folder` has no checkpoint, or if a file is missing or changed.
GPUPS_EXPORT std::vector<Blob> read_blobs(std::filesystem::path const& folder);

// Returns whether the first save to a folder began and did not complete, as of a program that was killed: the folder
// has no checkpoint, and never had one. The next save replaces its files.
GPUPS_EXPORT bool is_unfinished_checkpoint(std::filesystem::path const& folder);

// Writes an array of the application, for example a dense layer, in the format of Store::export_rows(): PATH.npy, or
// PATH.bin and PATH.json. shape: the sizes of the axes; the last axis is contiguous. values: in host memory. Throws
// Error if the shape does not match the number of values, or if the array's file exists or cannot be written.
//
//   export_array("out/weights", ExportFormat::kNpy, std::array<std::uint64_t, 2>{64, 10}, weights);
GPUPS_EXPORT void export_array(std::filesystem::path const& path, ExportFormat format,
                               std::span<std::uint64_t const> shape, std::span<float const> values);

}  // namespace gpups
