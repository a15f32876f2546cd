// SPDX-License-Identifier: Apache-2.0
// Exports models that are a vector for each name, in table 0: of the words of a text, the nodes of a network, or items.
// The file formats of word2vec are those that gensim and many other programs read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gpups/array.hpp"
#include "trainer/input/dictionary.hpp"
#include "trainer/saved/saved_model.hpp"

namespace gpups::trainer {

// Writes a line with the numbers of names and of columns, then each name with its row: as text, with enough digits to
// read the same floats again, or with the bytes of the floats. rows: (names, dim), on the host. REQUIRES: no name is
// empty or has white space. Throws Error if the file cannot be written.
void write_word2vec(std::filesystem::path const& path, Dictionary const& names, MatrixView<float const> rows,
                    bool binary);

// Writes the rows of all tables and the names of their keys, in a file such as words.tsv; or, with a format of
// word2vec, vectors.txt or vectors.bin with the names and rows of table 0. Leaves out names that have no row, since no
// batch of the training has used them, and adds a notice of them. names: of table 0. other_names: of table 1; null: its
// keys have the same names. Throws Error for names that a format cannot hold.
void export_named_vectors(SavedModel const& model, Data const& data, Dictionary const& names,
                          Dictionary const* other_names, std::filesystem::path const& folder, ModelFormat format,
                          std::vector<std::string>& notices);

}  // namespace gpups::trainer
