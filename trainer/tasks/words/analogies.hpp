// SPDX-License-Identifier: Apache-2.0
// Word analogies, a test of word vectors: "a is to b as c is to ?". An answer is right if the vector b - a + c has a
// larger cosine with the vector of the expected word than with that of every other word except a, b and c. Vectors have
// length 1 before they are added (Mikolov et al. 2013; compute-accuracy of word2vec).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/words/corpus.hpp"

namespace gpups::trainer {

struct Analogy {
  std::uint32_t a, b, c, answer;  // numbers of words
  std::uint32_t section;
};

// The questions of a file.
struct Analogies {
  std::vector<std::string> sections;
  std::vector<Analogy> questions;
  std::size_t left_out = 0;  // questions with words that are not among the candidates
  std::size_t words = 0;     // number of candidates: the most frequent words
  std::string notice{};      // that the first line may be a heading, or empty

  bool empty() const { return questions.empty() && left_out == 0; }
};

// Reads lines of four words, in sections that begin with a line ": NAME". A word that the corpus does not have is also
// looked up in lower case. words_max: the number of candidates. Throws Error for another line, or if no question is
// left.
Analogies read_analogies(std::filesystem::path const& file, Corpus const& corpus, std::size_t words_max);

// Returns the bytes that wait_answer() needs on a rank.
std::uint64_t analogy_bytes(Analogies const& analogies, std::size_t dim);

// Returns the share of right answers, as a whole and by section. rows: (words, dim) of the candidates, on the device.
// Blocks. Collective.
Metrics wait_answer(Stream& stream, Store& store, Analogies const& analogies, MatrixView<float const> rows);

}  // namespace gpups::trainer
