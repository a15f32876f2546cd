// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error, also if they are closed or cannot be written.
#pragma once

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

}  // namespace gpups::tools
