// SPDX-License-Identifier: Apache-2.0
// The file formats of word2vec, which gensim and many other programs read.
#pragma once

#include <filesystem>

#include "gpups/array.hpp"
#include "trainer/input/dictionary.hpp"

namespace gpups::trainer {

// Writes a line with the numbers of names and of columns, then each name with its row: as text, with enough digits to
// read the same floats again, or with the bytes of the floats. rows: (names, dim), on the host. REQUIRES: names without
// blanks. Throws Error if the file cannot be written.
void write_word2vec(std::filesystem::path const& path, Dictionary const& names, MatrixView<float const> rows,
                    bool binary);

}  // namespace gpups::trainer
