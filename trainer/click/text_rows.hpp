// SPDX-License-Identifier: Apache-2.0
// Lines of text to samples: the fast part, one thread.
//
// A line is read from left to right, once, with the usual cells (a short integer, 8 hexadecimal digits, nothing)
// decided by a few words; anything else takes a slower way, which also knows what to say of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trainer/bad_lines.hpp"
#include "trainer/click/layout.hpp"
#include "trainer/click/samples.hpp"

namespace gpups::trainer {

// Values that a cell may have.
constexpr std::size_t kCellValuesMax = 65536;
// Bytes behind a text that may be read, and mean nothing.
constexpr std::size_t kTextPadding = 16;

// Replaces `out` by the samples of `text`, whose first line is line `first_line` of `path`, and `bad` by its bad lines.
// REQUIRES: text is empty or ends with '\n'; kTextPadding bytes behind it can be read.
void parse_rows(Layout const& layout, std::string_view text, std::string_view path, std::uint64_t first_line,
                SampleBatch& out, BadLines& bad);

}  // namespace gpups::trainer
