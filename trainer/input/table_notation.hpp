// SPDX-License-Identifier: Apache-2.0
// Notations other than columns: what is around names or after them would be read as parts of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainer/input/table_division.hpp"

namespace gpups::trainer {

// Throws Error if most lines are N-Triples: their final '.' would be part of a name. path: for messages.
void require_no_n_triples(std::span<std::string_view const> lines, std::string_view path);

// Throws Error if the lines are a list of YAML: its signs and keys would be names. path: for messages.
void require_no_yaml(std::span<std::string_view const> lines, std::string_view path);

// Throws Error if most lines are items with utilities as SPMF writes them: "41 15 76:60:10 10 40". path: for messages.
void require_no_utilities(std::span<std::string_view const> lines, std::string_view path);

// Throws Error if most lines have the attributes of networkx after the names: "a b {'weight': 3}".
void require_no_attributes(std::span<std::string_view const> lines, std::string_view path);

// Throws Error if the names of most rows have a separator, brackets or numbers that are no part of them: "(a, b)",
// "a: b", "a -> b", "a b .", "u i:5 j:2", "u,['i', 'j']". Returns a notice if they may have some, or nothing. lists: a
// row is a name and any number of others.
std::string require_plain_names(Division const& division, std::span<std::string_view const> lines,
                                TableKind const& kind, bool lists, std::string_view path);

}  // namespace gpups::trainer
