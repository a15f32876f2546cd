// SPDX-License-Identifier: Apache-2.0
// The ranking kernel, compared with plain loops.
#include "kernels/score/rank_scores.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace gpups::kernels::rank_scores_test {
namespace {

struct Case {
  std::size_t queries, columns;
  int values;  // the number of different scores, so that there are ties
};

struct Counts {
  std::uint32_t better = 0, equal = 0;
  bool operator==(Counts const&) const = default;
};

// The counts of each query, by the kernel and by plain loops.
struct Ranked {
  std::vector<Counts> kernel, by_hand;
};

Ranked rank(Device device, Case const& c, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<float>> scores(c.queries, std::vector<float>(c.columns));
  std::vector<std::uint32_t> targets, offsets{0}, known;
  Ranked result;
  for (auto& row : scores) {
    for (float& s : row) s = static_cast<float>(random() % static_cast<unsigned>(c.values));
    if (random() % 4 == 0) row[random() % c.columns] = NAN;
    targets.push_back(random() % static_cast<unsigned>(c.columns));
    std::set<std::uint32_t> out{targets.back()};
    for (std::size_t i = random() % c.columns; i > 0; --i) out.insert(random() % static_cast<unsigned>(c.columns));
    known.insert(known.end(), out.begin(), out.end());
    offsets.push_back(static_cast<std::uint32_t>(known.size()));
    Counts counts;
    for (std::uint32_t e = 0; e < c.columns; ++e) {
      float const target = row[targets.back()];
      if (out.contains(e)) continue;
      if (row[e] == target) {
        ++counts.equal;
      } else if (!(row[e] < target)) {
        ++counts.better;
      }
    }
    result.by_hand.push_back(counts);
  }

  Stream stream(device, 2);
  std::size_t const stride = row_stride(c.columns), tiles = rank_tiles(c.columns);
  std::vector<float> flat(c.queries * stride);
  for (std::size_t q = 0; q < c.queries; ++q) std::copy(scores[q].begin(), scores[q].end(), flat.begin() + q * stride);
  auto const on_device = to_device(stream, flat);
  auto const t = to_device(stream, targets), o = to_device(stream, offsets), k = to_device(stream, known);
  Array<std::uint32_t> const better(device, c.queries * tiles), equal(device, c.queries * tiles);
  rank_scores(stream, {.scores = {on_device.data(), c.queries, c.columns, stride, device},
                       .targets = t,
                       .known_offsets = o,
                       .known = k,
                       .better = better,
                       .equal = equal});
  auto const b = to_host(stream, better.view()), e = to_host(stream, equal.view());
  for (std::size_t q = 0; q < c.queries; ++q) {
    Counts counts;
    for (std::size_t i = 0; i + 1 < tiles; ++i) {
      counts.better += b[q * tiles + i];
      counts.equal += e[q * tiles + i];
    }
    counts.better -= b[q * tiles + tiles - 1];
    counts.equal -= e[q * tiles + tiles - 1];
    result.kernel.push_back(counts);
  }
  return result;
}

TEST(RankScores, CountsBetterAndEqualOnEveryDevice) {
  std::vector<Device> devices{Device::host()};
  if (cuda_device_count() > 0) devices.push_back(Device::cuda(0));
  for (Device device : devices) {
    std::uint32_t seed = 0;
    for (Case const& c : {Case{1, 1, 2}, Case{3, 17, 4}, Case{40, 4096, 50}, Case{20, 4097, 3}, Case{150, 9000, 1000},
                          Case{2, 70000, 7}}) {
      Ranked const r = rank(device, c, ++seed);
      for (std::size_t q = 0; q < c.queries; ++q) {
        ASSERT_EQ(r.kernel[q], r.by_hand[q]) << to_string(device) << ", " << c.columns << " columns, query " << q;
      }
    }
  }
}

// Several queries of a row have other targets and the same columns that do not count.
TEST(RankScores, QueriesMayShareRowsOnEveryDevice) {
  std::vector<Device> devices{Device::host()};
  if (cuda_device_count() > 0) devices.push_back(Device::cuda(0));
  constexpr std::size_t kRows = 3, kColumns = 5000, kQueries = 7;
  std::mt19937 random(7);
  std::vector<float> scores(kRows * row_stride(kColumns));
  for (float& s : scores) s = static_cast<float>(random() % 100);
  std::vector<std::uint32_t> const rows{2, 0, 0, 1, 2, 2, 0}, known{4, 4999, 17, 4}, offsets{0, 2, 2, 4};
  std::vector<std::uint32_t> const targets{3, 9, 4998, 0, 18, 4097, 5};
  for (Device device : devices) {
    Stream stream(device, 2);
    std::size_t const tiles = rank_tiles(kColumns);
    auto const s = to_device(stream, scores);
    auto const t = to_device(stream, targets), r = to_device(stream, rows), o = to_device(stream, offsets),
               k = to_device(stream, known);
    Array<std::uint32_t> const better(device, kQueries * tiles), equal(device, kQueries * tiles);
    rank_scores(stream, {.scores = {s.data(), kRows, kColumns, row_stride(kColumns), device},
                         .targets = t,
                         .rows = r,
                         .known_offsets = o,
                         .known = k,
                         .better = better,
                         .equal = equal});
    auto const b = to_host(stream, better.view()), e = to_host(stream, equal.view());
    for (std::size_t q = 0; q < kQueries; ++q) {
      float const* const row = scores.data() + rows[q] * row_stride(kColumns);
      std::set<std::uint32_t> const out(known.begin() + offsets[rows[q]], known.begin() + offsets[rows[q] + 1]);
      Counts by_hand, counts;
      for (std::uint32_t c = 0; c < kColumns; ++c) {
        if (out.contains(c)) continue;
        by_hand.better += row[c] > row[targets[q]] ? 1 : 0;
        by_hand.equal += row[c] == row[targets[q]] ? 1 : 0;
      }
      for (std::size_t i = 0; i < tiles; ++i) {
        bool const adds = i + 1 < tiles;
        counts.better += adds ? b[q * tiles + i] : -b[q * tiles + i];
        counts.equal += adds ? e[q * tiles + i] : -e[q * tiles + i];
      }
      EXPECT_EQ(counts, by_hand) << to_string(device) << ", query " << q;
    }
  }
}

}  // namespace
}  // namespace gpups::kernels::rank_scores_test
