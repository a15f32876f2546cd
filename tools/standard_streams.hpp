// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error, also if they are closed or cannot be written.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace gpups::tools {

// Opens /dev/null for each standard stream that is closed, in the wrong direction: no other file gets the number of the
// stream, and writing to it still fails. Call this before the program opens any file.
void open_standard_streams();

// Writes to standard output. Throws std::runtime_error if that fails.
void print_result(std::string const& text);

// Returns "gpu_train: error: ..." on one line.
std::string error_line(std::string text);
// Writes this line to standard error. A failure to write is ignored.
void print_error(std::string const& text);

// The destination of a long result: standard output, or a file that gets its name when it is complete.

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
