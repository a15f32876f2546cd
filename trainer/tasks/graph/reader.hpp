// SPDX-License-Identifier: Apache-2.0
// The readers of knowledge graphs. A reader is a function that reads files into a Dataset, and a line in readers.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/tasks/graph/dataset.hpp"

namespace gpups::trainer {

// A named reader.
struct ReaderEntry {
  std::string_view name;
  // Throws Error, with file and line, if a file has no triples or too many bad lines.
  Dataset (*read)(DataConfig const& config);
};

std::span<ReaderEntry const> readers();
std::vector<std::string> reader_names();

// Reads a graph with the reader `config.reader`.
Dataset read_dataset(DataConfig const& config);

// Reads text files of triples.
Dataset read_triples(DataConfig const& config);
// Makes a graph from a WordNet database.
Dataset read_wordnet(DataConfig const& config);

}  // namespace gpups::trainer
