// SPDX-License-Identifier: Apache-2.0
// The case of the step of word vectors.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/score/types.hpp"
#include "kernels/words/skip_gram.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using kernels::ContextWindow;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kWords = 20, kNegatives = 5, kDrawn = 12, kReach = 3;
constexpr float kL2 = 0.01F;

// Groups of kWords positions; each position is a word, and its window reaches over 1 .. kReach positions on each side.
struct SkipGramInput {
  SkipGramInput(Stream& stream, Random& random, CaseSize size)
      : dim(size.dim), stride(row_stride(dim)), rows(size.n / 4 + 1) {
    words = floats(random, rows, dim);
    contexts = floats(random, rows, dim);
    for (std::uint32_t first = 0; first < size.n; first += kWords) {
      auto const count = std::min(kWords, static_cast<std::uint32_t>(size.n) - first);
      for (std::uint32_t i = 0; i < count; ++i) {
        auto const reach = static_cast<std::uint32_t>(1 + below(random, kReach));
        windows.push_back({i - std::min(i, reach), i, std::min(count, i + reach + 1)});
        word_rows.push_back(static_cast<std::uint32_t>(below(random, rows)));
      }
      for (std::uint32_t c = 0; c < count + std::min(kDrawn, count * kNegatives); ++c) {
        context_rows.push_back(static_cast<std::uint32_t>(below(random, rows)));
      }
      word_offsets.push_back(static_cast<std::uint32_t>(word_rows.size()));
      context_offsets.push_back(static_cast<std::uint32_t>(context_rows.size()));
    }
    words_there = matrix(stream, words, rows, dim);
    contexts_there = matrix(stream, contexts, rows, dim);
    windows_there = to_device(stream, windows);
    for (auto [from, to] :
         {std::pair(&word_rows, &word_rows_there), std::pair(&context_rows, &context_rows_there),
          std::pair(&word_offsets, &word_offsets_there), std::pair(&context_offsets, &context_offsets_there)}) {
      *to = to_device(stream, *from);
    }
    of_words = Matrix<float>(stream.device(), word_rows.size(), dim);
    of_contexts = Matrix<float>(stream.device(), context_rows.size(), dim);
    losses = Array<std::int64_t>(stream.device(), word_offsets.size() - 1);
  }

  void run(Stream& stream) const {
    kernels::skip_gram(stream, {.words = words_there,
                                .contexts = contexts_there,
                                .word_rows = word_rows_there,
                                .context_rows = context_rows_there,
                                .windows = windows_there,
                                .word_offsets = word_offsets_there,
                                .context_offsets = context_offsets_there,
                                .negatives = kNegatives,
                                .shared_negatives = kDrawn,
                                .l2 = kL2,
                                .word_gradients = of_words,
                                .context_gradients = of_contexts,
                                .losses = losses});
  }

  std::string wrong(Stream& stream) const {
    std::vector<double> want_words(word_rows.size() * stride), want_contexts(context_rows.size() * stride), want_losses;
    // Adds the gradients of weight * softplus(sign * score). Returns softplus(sign * score).
    auto const add = [&](std::uint32_t w, std::uint32_t c, double sign, double weight) {
      float const* const word = words.data() + word_rows[w] * stride;
      float const* const context = contexts.data() + context_rows[c] * stride;
      double score = 0;
      for (std::size_t j = 0; j < dim; ++j) score += double{word[j]} * context[j];
      double const slope = weight * sign / (1 + std::exp(-sign * score));
      for (std::size_t j = 0; j < dim; ++j) {
        want_words[w * stride + j] += slope * context[j];
        want_contexts[c * stride + j] += slope * word[j];
      }
      return std::log1p(std::exp(sign * score));
    };
    auto const add_penalty = [&](std::uint32_t w, std::uint32_t c) {
      for (std::size_t j = 0; j < dim; ++j) {
        want_words[w * stride + j] += 2 * double{kL2} * words[word_rows[w] * stride + j];
        want_contexts[c * stride + j] += 2 * double{kL2} * contexts[context_rows[c] * stride + j];
      }
    };
    for (std::size_t g = 0; g + 1 < word_offsets.size(); ++g) {
      std::uint32_t const first = context_offsets[g], end = context_offsets[g + 1];
      std::uint32_t const drawn = end - first - (word_offsets[g + 1] - word_offsets[g]);
      double sum = 0;
      for (std::uint32_t w = word_offsets[g]; w < word_offsets[g + 1]; ++w) {
        double const pairs = windows[w].end - windows[w].first - 1;
        double loss = 0;
        for (std::uint32_t c = windows[w].first; c < windows[w].end; ++c) {
          if (c == windows[w].own) continue;
          loss += add(w, first + c, -1, 1);
          add_penalty(w, first + c);
        }
        double const weight = pairs * kNegatives / drawn;
        for (std::uint32_t c = end - drawn; c < end; ++c) loss += weight * add(w, c, 1, weight);
        sum += pairs > 0 ? loss / (pairs * (1 + kNegatives)) : 0;
      }
      want_losses.push_back(sum / (word_offsets[g + 1] - word_offsets[g]));
    }
    std::vector<float> got;
    for (std::int64_t const loss : to_host(stream, losses.view())) {
      got.push_back(static_cast<float>(static_cast<double>(loss) * kernels::kLossUnit));
    }
    return differ("gradients of words", to_host(stream, of_words.view().flat()), want_words, 1e-3) +
           differ("gradients of contexts", to_host(stream, of_contexts.view().flat()), want_contexts, 1e-3) +
           differ("losses", got, want_losses, 1e-4);
  }

  std::size_t dim, stride, rows;
  std::vector<float> words, contexts;
  std::vector<ContextWindow> windows;
  Ids word_rows, context_rows, word_offsets{0}, context_offsets{0};
  Matrix<float> words_there, contexts_there, of_words, of_contexts;
  Array<ContextWindow> windows_there;
  Array<std::uint32_t> word_rows_there, context_rows_there, word_offsets_there, context_offsets_there;
  Array<std::int64_t> losses;
};

Problem skip_gram(Stream& stream, CaseSize size, std::uint64_t seed) {
  Random random(seed);
  auto const s = std::make_shared<SkipGramInput const>(stream, random, size);
  Problem p;
  p.entries = size.n;
  p.bytes = 2 * (s->word_rows.size() + s->context_rows.size()) * s->stride * sizeof(float);
  p.run = [s](Stream& on) { s->run(on); };
  p.wrong = [s](Stream& on) { return s->wrong(on); };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->of_words.view().flat())) + bytes_of(to_host(on, s->of_contexts.view().flat())) +
           bytes_of(to_host(on, s->losses.view()));
  };
  return p;
}

constexpr KernelCase kWordsCases[] = {{"skip_gram", skip_gram}};

}  // namespace

std::span<KernelCase const> word_cases() { return kWordsCases; }

}  // namespace gpups::test
