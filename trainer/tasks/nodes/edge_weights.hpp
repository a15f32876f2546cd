// SPDX-License-Identifier: Apache-2.0
// Finds weights of edges that may be something else, and nodes that may be weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/dictionary.hpp"

namespace gpups::trainer {

// Adds a notice if the weights of a file's first rows are nodes: at least half are names of nodes, and the column has
// values as many and as large as those of a column of nodes. Weights that count, such as 1 to 8, have fewer, or are
// often the same as a node of their line. path: for messages.
void say_weights_that_are_nodes(std::span<std::vector<std::string> const> rows, Dictionary const& nodes,
                                std::string_view path, std::vector<std::string>& notices);

// Adds a notice if the weights of a file's first rows count its lines: they may be numbers of edges.
void say_weights_that_count(std::span<std::vector<std::string> const> rows, std::string_view path,
                            std::vector<std::string>& notices);

// Adds a notice if the second nodes of a file's first rows, which have no weight, are decimal fractions, or numbers
// between names in comments. names: the comments that are one name, between the rows.
void say_nodes_that_are_weights(std::span<std::vector<std::string> const> rows, std::uint64_t names,
                                std::string_view path, std::vector<std::string>& notices);

// Adds a notice if the first nodes of a file's first rows are whole numbers, another one in each row, and the weights
// are whole numbers too: the nodes may be in the other columns.
void say_first_nodes_that_number_rows(std::span<std::vector<std::string> const> rows, std::string_view path,
                                      std::vector<std::string>& notices);

}  // namespace gpups::trainer
