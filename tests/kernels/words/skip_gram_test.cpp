// SPDX-License-Identifier: Apache-2.0
// Losses and gradients of skip-gram, for rows that are no multiples of a vector, compared with loops in double.
#include "kernels/words/skip_gram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>

namespace gpups::test::skip_gram_test {
namespace {

using namespace kernels;

constexpr std::uint32_t kNegatives = 5, kSharedNegatives = 12;
constexpr float kUnset = 77, kL2 = 0.03F;

std::vector<double> row_of(Matrix<float> const& matrix, std::size_t i) {
  return {matrix.row(i).begin(), matrix.row(i).end()};
}

// Groups of 1 to 12 positions. Every fourth group has no words, and in the others some positions are contexts only.
struct Problem {
  Problem(std::size_t groups, std::size_t dim)
      : words(Device::host(), 19, dim), contexts(Device::host(), 13, dim), losses(groups) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (Matrix<float> const* matrix : {&words, &contexts}) {
      for (float& x : matrix->view().flat()) x = 0;
      for (std::size_t i = 0; i < matrix->rows(); ++i) {
        for (float& x : matrix->row(i)) x = 0.3F * normal(random);
      }
    }
    for (std::uint32_t g = 0; g < groups; ++g) {
      std::uint32_t const positions = 1 + g * 5 % 12;
      for (std::uint32_t own = 0; own < positions && g % 4 != 3; ++own) {
        if ((own + g) % 5 == 4) continue;
        std::uint32_t const reach = 1 + static_cast<std::uint32_t>(random() % 3);
        word_rows.push_back(static_cast<std::uint32_t>(random() % words.rows()));
        windows.push_back({own - std::min(own, reach), own, std::min(own + reach + 1, positions)});
      }
      auto const group_words = static_cast<std::uint32_t>(word_rows.size()) - word_offsets.back();
      for (std::uint32_t c = 0; c < positions + std::min(kSharedNegatives, kNegatives * group_words); ++c) {
        context_rows.push_back(static_cast<std::uint32_t>(random() % contexts.rows()));
      }
      word_offsets.push_back(static_cast<std::uint32_t>(word_rows.size()));
      context_offsets.push_back(static_cast<std::uint32_t>(context_rows.size()));
    }
    word_gradients = Matrix<float>(Device::host(), word_rows.size(), dim);
    context_gradients = Matrix<float>(Device::host(), context_rows.size(), dim);
    for (Matrix<float> const* matrix : {&word_gradients, &context_gradients}) {
      for (float& x : matrix->view().flat()) x = kUnset;
    }
  }

  void run(int threads) {
    Stream stream(Device::host(), threads);
    skip_gram(stream, {.words = words,
                       .contexts = contexts,
                       .word_rows = View<std::uint32_t const>(word_rows),
                       .context_rows = View<std::uint32_t const>(context_rows),
                       .windows = View<ContextWindow const>(windows),
                       .word_offsets = View<std::uint32_t const>(word_offsets),
                       .context_offsets = View<std::uint32_t const>(context_offsets),
                       .negatives = kNegatives,
                       .shared_negatives = kSharedNegatives,
                       .l2 = l2,
                       .word_gradients = word_gradients,
                       .context_gradients = context_gradients,
                       .losses = losses});
    stream.wait();
  }

  float l2 = 0;
  Matrix<float> words, contexts, word_gradients, context_gradients;
  std::vector<std::uint32_t> word_rows, context_rows;
  std::vector<ContextWindow> windows;
  std::vector<std::uint32_t> word_offsets{0}, context_offsets{0};
  std::vector<std::int64_t> losses;
};

using Rows = std::vector<std::vector<double>>;

struct Oracle {
  explicit Oracle(Problem const& p)
      : losses(p.losses.size()),
        word_gradients(p.word_rows.size(), std::vector<double>(p.words.columns())),
        context_gradients(p.context_rows.size(), std::vector<double>(p.words.columns())) {
    for (std::size_t g = 0; g < losses.size(); ++g) {
      std::uint32_t const first = p.context_offsets[g], end = p.context_offsets[g + 1];
      std::uint32_t const words = p.word_offsets[g + 1] - p.word_offsets[g];
      std::uint32_t const drawn = std::min(kSharedNegatives, kNegatives * words);
      for (std::uint32_t w = p.word_offsets[g]; w < p.word_offsets[g + 1]; ++w) {
        ContextWindow const window = p.windows[w];
        double of_word = 0;
        int pairs = 0;
        for (std::uint32_t c = window.first; c < window.end; ++c) {
          if (c == window.own) continue;
          of_word += add_pair(p, w, first + c, -1, 1);
          for (std::uint32_t k = end - drawn; k < end; ++k) {
            of_word += add_pair(p, w, k, 1, static_cast<double>(kNegatives) / drawn);
          }
          add_penalty(p, w, first + c);
          pairs += 1 + kNegatives;
        }
        if (pairs > 0) losses[g] += of_word / pairs / words;
      }
    }
  }

  // Adds the gradients of weight * softplus(sign * score), and returns its value.
  double add_pair(Problem const& p, std::uint32_t w, std::uint32_t c, double sign, double weight) {
    std::vector<double> const word = row_of(p.words, p.word_rows[w]), context = row_of(p.contexts, p.context_rows[c]);
    double score = 0;
    for (std::size_t j = 0; j < word.size(); ++j) score += word[j] * context[j];
    double const slope = weight * sign / (1 + std::exp(-sign * score));
    for (std::size_t j = 0; j < word.size(); ++j) {
      word_gradients[w][j] += slope * context[j];
      context_gradients[c][j] += slope * word[j];
    }
    return weight * std::log1p(std::exp(sign * score));
  }
  void add_penalty(Problem const& p, std::uint32_t w, std::uint32_t c) {
    std::vector<double> const word = row_of(p.words, p.word_rows[w]), context = row_of(p.contexts, p.context_rows[c]);
    for (std::size_t j = 0; j < word.size(); ++j) {
      word_gradients[w][j] += 2 * double{p.l2} * word[j];
      context_gradients[c][j] += 2 * double{p.l2} * context[j];
    }
  }

  std::vector<double> losses;
  Rows word_gradients, context_gradients;
};

void expect_near(Matrix<float> const& got, Rows const& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    for (std::size_t j = 0; j < want[i].size(); ++j) ASSERT_NEAR(got.row(i)[j], want[i][j], 4e-5) << i << ", " << j;
  }
}

std::vector<float> numbers_of(Matrix<float> const& matrix) {
  return {matrix.view().flat().begin(), matrix.view().flat().end()};
}

// groups, dim
class SkipGramOfSize : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SkipGramOfSize,
                         testing::Combine(testing::Values(0, 1, 3, 8, 9, 50), testing::Values(1, 5, 16, 18, 100)));

TEST_P(SkipGramOfSize, MatchesDefinition) {
  auto const [groups, dim] = GetParam();
  for (float const l2 : {0.0F, kL2}) {
    Problem p(groups, dim);
    p.l2 = l2;
    p.run(1);
    Oracle const want(p);
    for (std::size_t g = 0; g < groups; ++g) {
      ASSERT_NEAR(static_cast<double>(p.losses[g]) * 0x1p-30, want.losses[g], 1e-5 * (1 + want.losses[g])) << g;
    }
    expect_near(p.word_gradients, want.word_gradients);
    expect_near(p.context_gradients, want.context_gradients);
  }
}

TEST_P(SkipGramOfSize, BitsAreIndependentOfThreadCount) {
  auto const [groups, dim] = GetParam();
  Problem one(groups, dim), three(groups, dim);
  one.l2 = three.l2 = kL2;
  one.run(1);
  three.run(3);
  EXPECT_EQ(one.losses, three.losses);
  EXPECT_EQ(numbers_of(one.word_gradients), numbers_of(three.word_gradients));
  EXPECT_EQ(numbers_of(one.context_gradients), numbers_of(three.context_gradients));
}

TEST(SkipGram, GroupWithoutWordsAndWordWithoutContextsHaveNoLoss) {
  for (std::size_t dim : {5, 16}) {
    Problem p(4, dim);  // group 0 has one position, and group 3 has no words
    p.run(1);
    ASSERT_EQ(p.word_offsets[1], 1U);
    ASSERT_EQ(p.word_offsets[3], p.word_offsets[4]);
    EXPECT_EQ(p.losses[0], 0);
    EXPECT_EQ(p.losses[3], 0);
    EXPECT_GT(p.losses[1], 0);
    for (float x : p.word_gradients.row(0)) EXPECT_EQ(x, 0);
    for (std::uint32_t c = p.context_offsets[3]; c < p.context_offsets[4]; ++c) {
      for (float x : p.context_gradients.row(c)) EXPECT_EQ(x, 0) << c;
    }
  }
}

TEST(SkipGram, NanGivesLargeLossInItsGroupOnly) {
  for (std::size_t dim : {5, 18}) {
    Problem p(3, dim), without(3, dim);
    without.run(1);
    std::fill(p.word_rows.begin(), p.word_rows.end(), 0U);
    p.word_rows[p.word_offsets[1]] = 1;  // the only use of this row
    p.words.row(1)[dim - 1] = std::numeric_limits<float>::quiet_NaN();
    p.run(1);
    EXPECT_GE(p.losses[1], std::int64_t{1} << 40) << dim;
    EXPECT_LT(p.losses[2], std::int64_t{1000} << 30) << dim;
    EXPECT_LT(without.losses[1], std::int64_t{1000} << 30) << dim;
    std::uint32_t const drawn = std::min(kSharedNegatives, kNegatives * (p.word_offsets[2] - p.word_offsets[1]));
    EXPECT_TRUE(std::isnan(p.context_gradients.row(p.context_offsets[2] - drawn)[dim - 1])) << dim;
  }
}

}  // namespace
}  // namespace gpups::test::skip_gram_test
