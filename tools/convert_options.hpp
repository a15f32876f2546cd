// SPDX-License-Identifier: Apache-2.0
// The options of gpu_train convert.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "trainer/tasks/click/layout.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::tools {

// What to convert, and how.
struct Conversion {
  std::string text, binary;  // paths
  trainer::Layout layout;
  trainer::TextOptions options;
};

// Adds options to the command, and checks their values after parsing.
class ConvertOptions {
 public:
  void add_to(CLI::App& command);
  // Throws Error if the value of an option is not valid.
  Conversion checked() const;

 private:
  std::string text_, binary_;
  std::string numbers_ = "13", categories_ = "26", bad_share_max_ = "0", threads_ = "0";
  std::string separator_ = "auto", heading_ = "auto", comment_ = "auto";
  std::vector<std::string> columns_, many_, weighted_;
};

// Returns a message in which keys of configurations are the options of the same meaning.
std::string with_options(std::string message);

}  // namespace gpups::tools
