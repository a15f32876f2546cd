// SPDX-License-Identifier: Apache-2.0
#include "kernels/words/skip_gram.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/activation.hpp"
#include "kernels/words/skip_gram_host.hpp"

namespace gpups::kernels {

// Adds the gradients of a word and a context whose score is s.
template <class Lanes>
GPUPS_FN inline void add_pair(Lanes lanes, std::size_t stride, float slope, float const* word, float const* context,
                              float* word_gradient, float* context_gradient) {
  lanes.each(stride, [=](std::size_t j) {
    word_gradient[j] = multiply_add(slope, context[j], word_gradient[j]);
    context_gradient[j] = multiply_add(slope, word[j], context_gradient[j]);
  });
}

GPUPS_FN inline std::int64_t mean_loss(double sum, std::uint32_t words) {
  return words == 0 ? 0 : loss_units(sum / words);
}

template <Space S>
void run(Exec<S> ex, SkipGram const& g) {
  GPUPS_ASSERT(g.words.stride() == g.contexts.stride() && g.words.columns() == g.contexts.columns());
  GPUPS_ASSERT(g.word_gradients.stride() == g.words.stride() && g.context_gradients.stride() == g.words.stride());
  GPUPS_ASSERT(g.word_offsets.size() == g.context_offsets.size() && g.windows.size() == g.word_rows.size());
  std::size_t const groups = g.losses.size();
#ifndef __CUDACC__
  if (g.words.stride() % kLanes == 0) return skip_gram_on_host(ex, g);
#endif
  each_row(ex, groups, [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const dim = g.words.columns(), stride = g.words.stride();
    std::uint32_t const first = g.context_offsets[i], end = g.context_offsets[i + 1];
    std::uint32_t const first_word = g.word_offsets[i], words = g.word_offsets[i + 1] - first_word;
    std::uint32_t const drawn = negatives_of_group(g.negatives, g.shared_negatives, words);
    float const of_negative = words == 0 ? 0 : static_cast<float>(g.negatives) / static_cast<float>(drawn);
    for (std::uint32_t c = first; c < end; ++c) {
      std::uint32_t const pairs =
          g.l2 == 0 || c >= end - drawn ? 0 : pairs_of_position(g.windows, first_word, first_word + words, c - first);
      float const factor = 2 * g.l2 * static_cast<float>(pairs);
      float const* const row = g.contexts.row(g.context_rows[c]);
      float* const gradient = g.context_gradients.row(c);
      lanes.each(stride, [=](std::size_t j) { gradient[j] = pairs == 0 ? 0 : factor * row[j]; });
    }
    double loss = 0;
    for (std::uint32_t w = first_word; w < first_word + words; ++w) {
      ContextWindow const window = g.windows[w];
      float const* const word = g.words.row(g.word_rows[w]);
      float* const gradient = g.word_gradients.row(w);
      auto const pairs = static_cast<float>(window.end - window.first - 1);
      float const penalty = 2 * g.l2 * pairs, weight = pairs * of_negative;
      lanes.each(stride, [=](std::size_t j) { gradient[j] = penalty == 0 ? 0 : penalty * word[j]; });
      float of_word = 0;
      auto const add = [&](std::uint32_t c, bool positive) {
        float const* const context = g.contexts.row(g.context_rows[c]);
        float const score = lanes.sum(dim, [=](std::size_t j) { return word[j] * context[j]; });
        Softplus const at = softplus(positive ? -score : score);
        of_word = positive ? of_word + at.value : multiply_add(weight, at.value, of_word);
        add_pair(lanes, stride, positive ? -at.slope : weight * at.slope, word, context, gradient,
                 g.context_gradients.row(c));
      };
      for (std::uint32_t c = window.first; c < window.end; ++c) {
        if (c != window.own) add(first + c, true);
      }
      for (std::uint32_t c = end - drawn; c < end; ++c) add(c, false);
      if (pairs > 0) loss += static_cast<double>(of_word) / (pairs * (1 + g.negatives));
    }
    if (lanes.first()) g.losses[i] = mean_loss(loss, words);
  });
}

GPUPS_KERNEL(skip_gram, SkipGram)

}  // namespace gpups::kernels
