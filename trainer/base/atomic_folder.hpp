// SPDX-License-Identifier: Apache-2.0
// Creates folders and files atomically: they exist whole, or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace gpups::trainer {

// Creates a temporary folder beside `folder`, calls `write` to fill it, and renames it to `folder`. Removes the
// temporary folder if `write` throws. Throws Error if `folder` exists and is not empty, or cannot be written.
void write_folder(std::filesystem::path const& folder,
                  std::function<void(std::filesystem::path const& beside)> const& write);

// Writes `bytes` to a file, or replaces it: writes PATH.new and renames it, so that no incomplete file is left. Throws
// Error if that fails.
void write_file(std::filesystem::path const& path, std::string const& bytes);

}  // namespace gpups::trainer
