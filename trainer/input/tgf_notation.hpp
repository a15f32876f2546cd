// SPDX-License-Identifier: Apache-2.0
// The Trivial Graph Format, which yEd writes: lines of a node and its label, a line "#", and lines of two nodes.
#pragma once

#include <string_view>

namespace gpups::trainer {

// Throws Error if a text is a network in this format: labels would be read as nodes. text: the first lines of a file.
// path: for messages.
void require_no_tgf(std::string_view text, std::string_view path);

}  // namespace gpups::trainer
