// SPDX-License-Identifier: Apache-2.0
// The ranking kernel, compared with plain loops.
#include "kernels/rank_scores.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace gpups::kernels {
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

}  // namespace
}  // namespace gpups::kernels
