// SPDX-License-Identifier: Apache-2.0
// The synsets of a WordNet database (wndb(5WN)) and the pointers between them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpups::trainer {

// A semantic pointer: its symbol, such as "@", and the number of the synset it leads to.
struct SynsetPointer {
  std::string symbol;
  std::uint32_t to;
};

struct Synset {
  std::string name;  // "dog.n.01": first word, kind, number of the sense; unique
  std::vector<SynsetPointer> pointers;
};

// Reads data.* and index.* of nouns, verbs, adjectives and adverbs, in this order. Pointers between words are left
// out. Throws Error, naming file and line, for what is not such a database.
std::vector<Synset> read_wordnet_database(std::filesystem::path const& folder);

}  // namespace gpups::trainer
