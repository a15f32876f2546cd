// SPDX-License-Identifier: Apache-2.0
// Counts the bad lines of a text file, and keeps the first few for messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// The bad lines of a file, or of a piece of it.
struct BadLines {
  std::uint64_t bad = 0, lines = 0;  // number of bad lines, and of all lines
  std::vector<std::string> first;    // the first 3 bad lines at most, each as position and reason

  // Counts a bad line. position: "line 7", for example.
  void add(std::string_view position, std::string_view why);
  // Adds the counts of a later piece of the same file.
  void append(BadLines const& later);
  // Adds a notice if there are bad lines. Throws Error if their share of all lines is more than `share_max`. The error
  // says "a line is `line_is`, separated by tabs" and names `setting`, the key that allows more bad lines.
  void report(std::filesystem::path const& path, double share_max, std::string_view line_is, std::string_view setting,
              std::vector<std::string>& notices) const;
};

}  // namespace gpups::trainer
