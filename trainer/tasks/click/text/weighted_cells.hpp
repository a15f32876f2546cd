// SPDX-License-Identifier: Apache-2.0
// Finds cells of several values that are written in another way than "a|b" and "a:1|b:2".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainer/input/table_layout.hpp"
#include "trainer/tasks/click/layout.hpp"

namespace gpups::trainer {

// Throws Error if, in the lines of a file, no cell of a weighted category has '|', and several have pairs such as
// "a:1,b:2": each would be one value; or if its weights follow '=': they would be part of the values. table: how the
// lines are divided, with the columns of `layout`. path: for messages.
void require_bars(std::span<std::string_view const> lines, TableLayout const& table, Layout const& layout,
                  std::string_view path);

// Returns a notice if values between '|' have blanks around them, which are part of them, or an empty text.
std::string blanks_at_bars(std::span<std::string_view const> lines, TableLayout const& table, Layout const& layout,
                           std::string_view path);

}  // namespace gpups::trainer
