// SPDX-License-Identifier: Apache-2.0
// Converts text of click data to the binary file that training maps. Memory is bounded for files of any size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/tasks/click/layout.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer {

// The result of a conversion.
struct Converted {
  std::uint64_t samples = 0;
  std::uint64_t bad = 0;    // lines left out
  std::uint64_t bytes = 0;  // of the binary file
  double seconds = 0;
  std::vector<std::string> notices;
  std::string columns;  // which columns of the text became numbers and categories, for the log
};

// Reads `text` like read_samples_text(), without options.same, and writes `binary`, with the names of a heading. The
// file has another name until it is complete. Throws the errors of read_samples_text(), and Error if the file cannot be
// written or would replace a file of another kind.
Converted convert_samples(std::filesystem::path const& text, std::filesystem::path const& binary, Layout const& layout,
                          TextOptions const& options);

}  // namespace gpups::trainer
