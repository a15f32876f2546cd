// SPDX-License-Identifier: Apache-2.0
// A reader turns files into a Dataset. A new one is a function, and a line in readers.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config.hpp"
#include "trainer/graph/dataset.hpp"

namespace gpups::trainer {

struct ReaderEntry {
  std::string_view name;
  // Throws Error, naming file and line, where there is no data or too much of it is bad.
  Dataset (*read)(DataConfig const& config);
};

std::span<ReaderEntry const> readers();
std::vector<std::string> reader_names();

// Reads with the reader that config.reader names.
Dataset read_dataset(DataConfig const& config);

// The readers.
Dataset read_triples(DataConfig const& config);
Dataset read_wordnet(DataConfig const& config);

}  // namespace gpups::trainer
