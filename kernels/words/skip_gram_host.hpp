// SPDX-License-Identifier: Apache-2.0
// skip_gram on the host: scores all contexts of a word, then adds to all gradients column by column, so that the word's
// gradient stays in registers. Only for skip_gram.cu.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <vector>

#include "kernels/base/vector.hpp"
#include "kernels/score/activation.hpp"
#include "kernels/score/triple_math.hpp"
#include "kernels/words/skip_gram.hpp"

namespace gpups::kernels {

// One group at a time. REQUIRES: the stride is a multiple of kLanes, and the padding of rows is 0.
class HostSkipGram {
 public:
  explicit HostSkipGram(SkipGram const& g) : g_(g), stride_(g.words.stride()) {}

  void group(std::size_t i) {
    std::uint32_t const first = g_.context_offsets[i], end = g_.context_offsets[i + 1];
    std::uint32_t const first_word = g_.word_offsets[i], words = g_.word_offsets[i + 1] - first_word;
    std::uint32_t const drawn = negatives_of_group(g_.negatives, g_.shared_negatives, words);
    begin_context_gradients(i, end - drawn);
    float const of_negative = words == 0 ? 0 : static_cast<float>(g_.negatives) / static_cast<float>(drawn);
    double loss = 0;
    for (std::uint32_t w = first_word; w < first_word + words; ++w) {
      ContextWindow const window = g_.windows[w];
      listed_.clear();
      for (std::uint32_t c = window.first; c < window.end; ++c) {
        if (c != window.own) listed_.push_back(first + c);
      }
      std::size_t const pairs = listed_.size();
      for (std::uint32_t c = end - drawn; c < end; ++c) listed_.push_back(c);
      score(w);
      float const of_word = to_slopes(pairs, of_negative);
      if (pairs > 0) loss += static_cast<double>(of_word) / (static_cast<double>(pairs) * (1 + g_.negatives));
      add_gradients(w, pairs);
    }
    g_.losses[i] = words == 0 ? 0 : loss_units(loss / words);
  }

 private:
  static constexpr std::size_t kRows = 4;  // that are scored together
  static_assert(kVector % kRows == 0);

  // Sets the gradients of a group's contexts to those of the penalty. negatives: the first one.
  void begin_context_gradients(std::size_t i, std::uint32_t negatives) {
    std::uint32_t const first = g_.context_offsets[i], end = g_.context_offsets[i + 1];
    std::fill_n(g_.context_gradients.row(first), (end - first) * stride_, 0.0F);
    if (g_.l2 == 0) return;
    for (std::uint32_t c = first; c < negatives; ++c) {
      auto const pairs = pairs_of_position(g_.windows, g_.word_offsets[i], g_.word_offsets[i + 1], c - first);
      float const factor = 2 * g_.l2 * static_cast<float>(pairs);
      float const* const row = g_.contexts.row(g_.context_rows[c]);
      float* const gradient = g_.context_gradients.row(c);
      for (std::size_t j = 0; j < stride_; ++j) gradient[j] = factor * row[j];
    }
  }
  // Sets slopes_ to the scores of the listed contexts.
  void score(std::uint32_t w) {
    float const* const word = g_.words.row(g_.word_rows[w]);
    slopes_.resize(whole_lanes(listed_.size()));
    rows_.resize(slopes_.size());
    for (std::size_t k = 0; k < rows_.size(); ++k) {  // the last row fills whole vectors
      rows_[k] = g_.contexts.row(g_.context_rows[listed_[std::min(k, listed_.size() - 1)]]);
    }
    for (std::size_t k = 0; k < rows_.size(); k += kVector) {
      Vector sums[kVector];
      for (std::size_t l = 0; l < kVector; l += kRows) {
        if (k + l < listed_.size()) {
          score(word, rows_.data() + k + l, sums + l);
        } else {
          std::fill_n(sums + l, kRows, Vector{});
        }
      }
      store(slopes_.data() + k, sums_of(sums));
    }
  }
  // Sets the products of a word and each of kRows rows, as vectors of partial sums. They share the loads of the word.
  void score(float const* word, float const* const* rows, Vector* products) const {
    Partials sums[kRows] = {};
    for (std::size_t j = 0; j < stride_; j += kLanes) {
      for (std::size_t v = 0; v < Partials::kVectors; ++v) {
        std::size_t const at = j + v * kVector;
        auto const of_word = load<Vector>(word + at);
        for (std::size_t r = 0; r < kRows; ++r) {
          sums[r].of[v] = multiply_add(of_word, load<Vector>(rows[r] + at), sums[r].of[v]);
        }
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) products[r] = sums[r].fold();
  }
  // Replaces the scores by the derivatives of the loss. Returns the loss of the word. of_negative: its weight for a
  // pair.
  float to_slopes(std::size_t pairs, float of_negative) {
    float const weight = static_cast<float>(pairs) * of_negative;
    float* const slopes = slopes_.data();
    losses_.resize(slopes_.size());
    for (std::size_t k = 0; k < pairs; ++k) slopes[k] = -slopes[k];
    for (std::size_t first = 0; first < slopes_.size(); first += kLanes) {
#pragma GCC ivdep
      for (std::size_t k = first; k < first + kLanes; ++k) {
        Softplus const at = softplus(slopes[k]);
        slopes[k] = at.slope;
        losses_[k] = at.value;
      }
    }
    float loss = 0;
    for (std::size_t k = 0; k < listed_.size(); ++k) {
      loss = k < pairs ? loss + losses_[k] : multiply_add(weight, losses_[k], loss);
      slopes[k] *= k < pairs ? -1.0F : weight;
    }
    return loss;
  }
  void add_gradients(std::uint32_t w, std::size_t pairs) {
    float const penalty = 2 * g_.l2 * static_cast<float>(pairs);
    float const* const word = g_.words.row(g_.word_rows[w]);
    float* const gradient = g_.word_gradients.row(w);
    std::size_t const count = listed_.size();
    for (std::size_t j = 0; j < stride_; j += kVector) {
      Vector const of_word = load<Vector>(word + j);
      Vector sum = penalty * of_word;
      for (std::size_t k = 0; k < count; ++k) {
        float* const of_context = g_.context_gradients.row(listed_[k]) + j;
        sum = multiply_add(slopes_[k], load<Vector>(rows_[k] + j), sum);
        store(of_context, multiply_add(slopes_[k], of_word, load<Vector>(of_context)));
      }
      store(gradient + j, sum);
    }
  }

  SkipGram const& g_;
  std::size_t stride_;
  std::vector<std::uint32_t> listed_;  // the contexts of the word: those of its window, then the negatives
  std::vector<float const*> rows_;     // their rows
  std::vector<float> slopes_, losses_;
};

inline void skip_gram_on_host(HostExec ex, SkipGram const& g) {
  constexpr std::size_t kGroups = 8;  // of a block
  std::size_t const groups = g.losses.size();
  ex.arena->blocks((groups + kGroups - 1) / kGroups, [&](std::size_t block) {
    HostSkipGram work(g);
    for (std::size_t i = block * kGroups; i < std::min((block + 1) * kGroups, groups); ++i) work.group(i);
  });
}

}  // namespace gpups::kernels

#endif
