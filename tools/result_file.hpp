// SPDX-License-Identifier: Apache-2.0
// The destination of a long result: standard output, or a file that gets its name when it is complete.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace gpups::tools {

// A file that is written in order.
class ResultFile {
 public:
  // path: empty for standard output. Throws Error if the file cannot be written.
  explicit ResultFile(std::filesystem::path path);
  // Removes the file if finish() was not called.
  ~ResultFile();
  ResultFile(ResultFile const&) = delete;
  ResultFile& operator=(ResultFile const&) = delete;

  // Appends text. Throws Error if a file, std::runtime_error if standard output cannot be written.
  void write(std::string const& text);
  // Completes the file, and gives it its name. Throws Error if this fails.
  void finish();

 private:
  void require_good();

  std::filesystem::path path_, beside_;
  std::ofstream out_;
};

}  // namespace gpups::tools
