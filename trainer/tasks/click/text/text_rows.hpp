// SPDX-License-Identifier: Apache-2.0
// Parses lines of text to samples, on one thread.
//
// A line is read once, from left to right. There is fast code for the usual cells: a short integer, 8 hexadecimal
// digits, or empty. All others are read by text_cells.hpp, which also finds what is wrong with a cell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trainer/input/line_reader.hpp"
#include "trainer/tasks/click/layout.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer {

// The most values in a cell.
constexpr std::size_t kCellValuesMax = 65536;
// Bytes after a text that the parser may read; their values have no effect.
constexpr std::size_t kTextPadding = 16;

// Replaces `out` by the samples of `text`, and adds its bad lines to `bad`. Skips empty lines. The text begins with
// line `first_line` of the file `path`. REQUIRES: text is empty or ends with '\n', has no byte of 0, and kTextPadding
// bytes after it can be read.
void parse_rows(Layout const& layout, std::string_view text, std::string_view path, std::uint64_t first_line,
                SampleBatch& out, BadLines& bad);

}  // namespace gpups::trainer
