// SPDX-License-Identifier: Apache-2.0
// Click data from text to the binary file that training maps, in bounded memory whatever its size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/click/layout.hpp"
#include "trainer/click/samples.hpp"

namespace gpups::trainer {

struct Converted {
  std::uint64_t samples = 0;
  std::uint64_t bad = 0;    // lines left out
  std::uint64_t bytes = 0;  // of the binary file
  double seconds = 0;
  std::vector<std::string> notices;
};

// Reads `text` as read_samples_text() does, and writes `binary`: beside it first, and renamed into place when it is
// whole. Throws Error as that does, where the file cannot be written, and where another kind of file has its name.
Converted convert_samples(std::filesystem::path const& text, std::filesystem::path const& binary, Layout const& layout,
                          TextOptions const& options);

}  // namespace gpups::trainer
