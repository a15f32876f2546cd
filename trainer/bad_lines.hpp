// SPDX-License-Identifier: Apache-2.0
// What is wrong with the lines of a text file: how many are bad, and the first few of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

struct BadLines {
  std::uint64_t bad = 0, lines = 0;  // bad ones, and all
  std::vector<std::string> first;    // at most 3, with position and reason

  void add(std::string_view position, std::string_view why);
  // What is wrong with lines that come after these.
  void append(BadLines const& later);
  // Adds a notice of lines that are left out, if any. Throws Error where they are more than `share_max` of all, with
  // what a line is ("a line is ...") and the name of the setting that allows more.
  void report(std::filesystem::path const& path, double share_max, std::string_view line_is, std::string_view setting,
              std::vector<std::string>& notices) const;
};

}  // namespace gpups::trainer
