// SPDX-License-Identifier: Apache-2.0
// Where a long result goes: standard output, or a file that is put in place when it is whole.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace gpups::tools {

class ResultFile {
 public:
  // path: empty for standard output. Throws Error where the file cannot be written.
  explicit ResultFile(std::filesystem::path path);
  // Leaves nothing where finish() was not called.
  ~ResultFile();
  ResultFile(ResultFile const&) = delete;
  ResultFile& operator=(ResultFile const&) = delete;

  // Throws where it cannot be written: Error for a file, std::runtime_error for standard output.
  void write(std::string const& text);
  void finish();

 private:
  void require_good();

  std::filesystem::path path_, beside_;
  std::ofstream out_;
};

}  // namespace gpups::tools
