// SPDX-License-Identifier: Apache-2.0
// A comment above the data that names its columns: numpy.savetxt() writes a heading so.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// Looks at the last comment before the first line of data, if the layout has no heading. Throws Error if it names the
// columns in another order than they are read. If the settings have this order, returns a notice instead; else nothing.
// text: the beginning of a file. fields: of its first line of data. path: for messages.
std::string require_order_of_comment(std::string_view text, std::size_t fields, TableLayout const& layout,
                                     TableSettings const& settings, TableKind const& kind, std::string_view path);

}  // namespace gpups::trainer
