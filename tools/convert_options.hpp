// SPDX-License-Identifier: Apache-2.0
// What a user typed for gpu_train convert.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "trainer/click/layout.hpp"
#include "trainer/click/samples.hpp"

namespace gpups::tools {

struct Conversion {
  std::string text, binary;  // paths
  trainer::Layout layout;
  trainer::TextOptions options;
};

class ConvertOptions {
 public:
  void add_to(CLI::App& command);
  // Throws Error where an option's value cannot be.
  Conversion checked() const;

 private:
  std::string text_, binary_;
  std::string numbers_ = "13", categories_ = "26", bad_share_max_ = "0", threads_ = "0";
  std::vector<std::string> many_, weighted_;
};

}  // namespace gpups::tools
