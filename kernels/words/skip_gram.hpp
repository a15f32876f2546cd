// SPDX-License-Identifier: Apache-2.0
// A step of skip-gram with negative sampling (Mikolov et al. 2013): the word at a position of a text predicts the words
// around it.
//
// Neighbouring positions form a group, which shares its negatives. The rows of a group stay in a cache while its scores
// and gradients are computed, and each of its words and contexts gets one gradient, the sum over all of its pairs.
// Reads and writes 4 * stride bytes for each word and context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/base/function.hpp"

namespace gpups::kernels {

// The positions around a word, as contexts of its group: first .. end - 1, without `own`, the word's position.
struct ContextWindow {
  std::uint32_t first, own, end;
};

// The contexts of a group are its positions, in the order of the text, and then its negatives, which all of its words
// share: see negatives_of_group(). With s the dot product of a word's row and a context's row, the loss of a word whose
// window has p other positions is the sum over these of softplus(-s), plus p * negatives times the mean over the
// group's negatives of softplus(s). So each pair has the weight of `negatives` negatives, as in word2vec, and more of
// them are drawn than a pair of word2vec has, which makes gradients less noisy. Gradients are of the sum of these
// losses and of the penalty, l2 * (|word|^2 + |context|^2) for each pair of a word and a position in its window.
struct SkipGram {
  MatrixView<float const> words;           // (any, dim)
  MatrixView<float const> contexts;        // (any, dim), with the same stride
  View<std::uint32_t const> word_rows;     // (w): the row of each word
  View<std::uint32_t const> context_rows;  // (c): the row of each context
  View<ContextWindow const> windows;       // (w)
  View<std::uint32_t const> word_offsets;  // (groups + 1): group g has words word_offsets[g] .. word_offsets[g + 1] - 1
  View<std::uint32_t const> context_offsets;  // (groups + 1): the same for contexts
  std::uint32_t negatives;                    // their weight in the loss of a pair
  std::uint32_t shared_negatives;             // of a group, at most
  float l2 = 0;
  MatrixView<float> word_gradients;     // (w or more, dim), with the same stride
  MatrixView<float> context_gradients;  // (c or more, dim), with the same stride
  // (groups): the mean over the group's words of loss / (p + p * negatives), without the penalty, in units of
  // kLossUnit; 0 without words
  View<std::int64_t> losses;
};

// Returns the number of negatives of a group: no more than its words weigh.
constexpr std::uint32_t negatives_of_group(std::uint32_t negatives, std::uint32_t shared_negatives,
                                           std::uint32_t words) {
  return words * negatives < shared_negatives ? words * negatives : shared_negatives;
}

// Returns the number of a group's windows that have its position `position`, of windows first .. end - 1.
GPUPS_FN inline std::uint32_t pairs_of_position(View<ContextWindow const> windows, std::uint32_t first,
                                                std::uint32_t end, std::uint32_t position) {
  std::uint32_t pairs = 0;
  for (std::uint32_t w = first; w < end; ++w) {
    ContextWindow const window = windows[w];
    if (window.first <= position && position < window.end && position != window.own) ++pairs;
  }
  return pairs;
}

void skip_gram(Stream& stream, SkipGram const& arguments);

}  // namespace gpups::kernels
