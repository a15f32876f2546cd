// SPDX-License-Identifier: Apache-2.0
// The files that a setting names, which may be a pattern.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gpups::trainer {

// Returns the files that a setting names, in the order of their names, part-2 before part-10: `file` in `folder`, or
// all that match it if it has '*' or '?' and is no file's name. Adds to `notices` which files match a pattern, and
// which of their names differ only by an end such as ".gz" or ".bak": copies would be read too. Throws Error if none
// match.
std::vector<std::filesystem::path> files_named(std::filesystem::path const& folder, std::string const& file,
                                               std::vector<std::string>& notices);

// Adds a notice if files of a split are files for training, too. split: "test", for example.
void say_same_files(std::vector<std::filesystem::path> const& train, std::vector<std::filesystem::path> const& held_out,
                    std::string const& split, std::vector<std::string>& notices);

}  // namespace gpups::trainer
