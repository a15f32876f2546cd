// SPDX-License-Identifier: Apache-2.0
// Finds what separates the fields of a file.
#pragma once

#include <span>
#include <string_view>

#include "trainer/input/table_division.hpp"

namespace gpups::trainer {

// Returns the lines, divided as the settings say, or in the way that gives most lines the same number of fields. path:
// for messages. Throws Error if two separators may be meant, or if lines have other notations than columns.
Division best_division(std::span<std::string_view const> lines, TableSettings const& settings, TableKind const& kind,
                       std::string_view path);

}  // namespace gpups::trainer
