// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error, whatever they are.
#pragma once

#include <string>

namespace gpups::tools {

// Where one is closed it becomes /dev/null, open the wrong way: no file of ours gets its number, and output to it still
// fails. To be called before anything is opened.
void open_standard_streams();

// Writes to standard output. Throws std::runtime_error where that fails.
void print_result(std::string const& text);

// "gpu_train: error: ..." on one line.
std::string error_line(std::string text);
// The same on standard error, where that can be written.
void print_error(std::string const& text);

}  // namespace gpups::tools
