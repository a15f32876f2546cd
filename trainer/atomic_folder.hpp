// SPDX-License-Identifier: Apache-2.0
// A folder that is there whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace gpups::trainer {

// Makes a folder beside `folder`, lets `write` fill it, and renames it into place; leaves nothing where that throws.
// Throws Error where there is something already, or it cannot be written.
void write_folder(std::filesystem::path const& folder,
                  std::function<void(std::filesystem::path const& beside)> const& write);

// Writes a file. Throws Error where that fails.
void write_file(std::filesystem::path const& path, std::string const& bytes);

}  // namespace gpups::trainer
