// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/held_out_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/base/long_loop.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kPairsAtOnce = 1024;   // pairs
constexpr std::uint32_t kOthersOfPair = 16;  // for each pair
constexpr std::uint32_t kDrawsOfOther = 64;  // to draw one that is not in the pair
constexpr std::uint64_t kOtherOfPair = 4;    // the purpose of random bits

// Adds the other member of each comparison.
void draw_others(HeldOutPair pair, RandomBits const& random, PairComparison const& with,
                 std::vector<std::uint32_t>& others) {
  std::uint64_t bits = 0;
  for (std::uint32_t k = 0; k < kOthersOfPair; ++k) {
    for (std::uint32_t attempt = 0; attempt < kDrawsOfOther; ++attempt) {
      std::uint32_t const other = with.draw(random(bits++));
      if (other == pair.first || other == pair.second) continue;
      if (with.may_be_pair && with.may_be_pair(pair.first, other)) continue;
      others.push_back(other);
      break;
    }
  }
}

// Says that fewer others than usual could be drawn for a number of pairs, or nothing: of few nodes with many edges,
// most pairs are edges.
std::string few_others(std::int64_t comparisons, std::size_t pairs) {
  auto const usual = static_cast<std::int64_t>(pairs * kOthersOfPair);
  if (2 * comparisons >= usual) return {};
  return fmt::format(", with {} of {} comparisons: nearly all other pairs are known ones", comparisons, usual);
}

// Rows of length 1, so that products are cosines.
class UnitRows {
 public:
  explicit UnitRows(Stream& stream, MatrixView<float const> rows)
      : rows_(to_host(stream, rows.flat())), stride_(rows.stride()), inverses_(rows.rows()) {
    for (std::size_t i = 0; i < inverses_.size(); ++i) {
      double const square = product(i, i);
      inverses_[i] = square > 0 ? 1 / std::sqrt(square) : 0;
    }
  }
  double cosine(std::size_t a, std::size_t b) const { return product(a, b) * inverses_[a] * inverses_[b]; }

 private:
  double product(std::size_t a, std::size_t b) const {
    double sum = 0;
    for (std::size_t j = 0; j < stride_; ++j) sum += double{rows_[a * stride_ + j]} * double{rows_[b * stride_ + j]};
    return sum;
  }

  std::vector<float> rows_;
  std::size_t stride_;
  std::vector<double> inverses_;
};

}  // namespace

Metrics wait_compare_pairs(Stream& stream, Store& store, std::span<HeldOutPair const> pairs,
                           PairComparison const& with) {
  std::int64_t sums[] = {0, 0};  // twice the comparisons that the pair won, and all comparisons
  auto const ranks = static_cast<std::size_t>(store.ranks());
  LongLoop progress("evaluating", static_cast<double>(pairs.size()), number(store.rank()) != 0);
  for (std::size_t b = number(store.rank()); b * kPairsAtOnce < pairs.size(); b += ranks) {
    if (progress.stops(static_cast<double>(b * kPairsAtOnce))) break;
    std::size_t const first = b * kPairsAtOnce, count = std::min(kPairsAtOnce, pairs.size() - first);
    std::vector<std::uint32_t> others;
    std::vector<std::size_t> ends;  // of each pair's others
    std::vector<Key> read;
    for (std::size_t i = first; i < first + count; ++i) {
      draw_others(pairs[i], RandomBits(with.seed, kOtherOfPair, 0, i), with, others);
      ends.push_back(others.size());
      read.push_back(with.keys[pairs[i].first]);
      read.push_back(with.keys[pairs[i].second]);
    }
    for (std::uint32_t const other : others) read.push_back(with.keys[other]);
    UnitRows const rows(stream, read_rows(stream, store, kVectorsTable, read).view());
    for (std::size_t i = 0, k = 0; i < count; ++i) {
      double const of_pair = rows.cosine(2 * i, 2 * i + 1);
      for (; k < ends[i]; ++k) {
        double const other = rows.cosine(2 * i, 2 * count + k);
        sums[0] += of_pair > other ? 2 : of_pair == other ? 1 : 0;
        sums[1] += 1;
      }
    }
  }
  store.wait_barrier();  // a rank serves the look-ups of other ranks until all ranks are done
  store.wait_allreduce(sums);
  if (sums[1] == 0) return {.json = {{"pairs", pairs.size()}}, .text = fmt::format("no auc of {} pairs", pairs.size())};
  double const auc = static_cast<double>(sums[0]) / 2 / static_cast<double>(sums[1]);
  return {.json = {{"pairs", pairs.size()}, {"auc", auc}},
          .text = fmt::format("auc {:.4f} of {} pairs{}", auc, pairs.size(), few_others(sums[1], pairs.size())),
          .quality = auc};
}

std::uint64_t pair_bytes(std::size_t stride) {
  return kPairsAtOnce * (2 + kOthersOfPair) * (2 * stride * sizeof(float) + sizeof(Key));
}

}  // namespace gpups::trainer
