// SPDX-License-Identifier: Apache-2.0
// Sparse matrices in the Matrix Market format (https://math.nist.gov/MatrixMarket/formats.html).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/input/line_reader.hpp"
#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// The head of a sparse matrix.
struct MatrixHead {
  std::uint64_t rows = 0, columns = 0, entries = 0;
  bool has_values = false;  // else the entries are pairs
  bool symmetric = false;   // the file has one of each two equal entries
};

// Returns whether a text begins as a matrix does.
bool is_matrix(std::string_view text);

// Reads the lines before the entries. Throws Error if the matrix is not sparse, if its entries are not real numbers,
// integers or nothing, or if they are not what `kind` reads.
MatrixHead read_matrix_head(LineReader& lines, TableKind const& kind);

// Returns why an entry is invalid, or nothing if it is valid: it is outside of the matrix, or has a value that is not
// above 0, where a reader of pairs would read a pair. fields: of its line.
std::string_view check_entry(std::span<std::string_view const> fields, MatrixHead const& head, TableKind const& kind);

}  // namespace gpups::trainer
