// SPDX-License-Identifier: Apache-2.0
// Reads the synsets of a WordNet database (wndb(5WN)) and the pointers between them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpups::trainer {

// A semantic pointer: its symbol, such as "@", and the index of its target synset.
struct SynsetPointer {
  std::string symbol;
  std::uint32_t to;
};

// A set of synonyms.
struct Synset {
  std::string name;  // "dog.n.01": first word, kind and number of the sense; unique
  std::vector<SynsetPointer> pointers;
};

// Reads data.* and index.* of nouns, verbs, adjectives and adverbs, in this order. Ignores pointers between words.
// Throws Error, with file and line, if a file is missing or invalid.
std::vector<Synset> read_wordnet_database(std::filesystem::path const& folder);

}  // namespace gpups::trainer
