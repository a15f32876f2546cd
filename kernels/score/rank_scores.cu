// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/rank_scores.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// A team counts a tile of columns, or the known columns of a query in pieces of a tile. Counts are sums of floats,
// which are exact up to 2^24.
template <Space S>
void run(Exec<S> ex, RankScores const& r) {
  std::size_t const tiles = rank_tiles(r.scores.columns());
  GPUPS_ASSERT(r.targets.empty() || r.target_scores.empty());
  each_row(
      ex, (r.targets.size() + r.target_scores.size()) * tiles, [r, tiles] GPUPS_FN(std::size_t i, NativeLanes lanes) {
        std::size_t const query = i / tiles, tile = i % tiles;
        std::size_t const row = r.rows.empty() ? query : r.rows[query];
        float const* const scores = r.scores.row(row);
        float const target = r.targets.empty() ? r.target_scores[query] : scores[r.targets[query]];
        std::uint32_t better = 0, equal = 0;
        if (tile + 1 < tiles) {
          float const* const begin = scores + tile * kRankTileColumns;
          std::size_t const left = r.scores.columns() - tile * kRankTileColumns;
          std::size_t const n = left < kRankTileColumns ? left : kRankTileColumns;
          better =
              static_cast<std::uint32_t>(lanes.sum(n, [=](std::size_t j) { return begin[j] <= target ? 0.0F : 1.0F; }));
          equal =
              static_cast<std::uint32_t>(lanes.sum(n, [=](std::size_t j) { return begin[j] == target ? 1.0F : 0.0F; }));
        } else {
          for (std::size_t k = r.known_offsets[row]; k < r.known_offsets[row + 1]; k += kRankTileColumns) {
            std::uint32_t const* const known = r.known.data() + k;
            std::size_t const left = r.known_offsets[row + 1] - k;
            std::size_t const n = left < kRankTileColumns ? left : kRankTileColumns;
            better += static_cast<std::uint32_t>(
                lanes.sum(n, [=](std::size_t j) { return scores[known[j]] <= target ? 0.0F : 1.0F; }));
            equal += static_cast<std::uint32_t>(
                lanes.sum(n, [=](std::size_t j) { return scores[known[j]] == target ? 1.0F : 0.0F; }));
          }
        }
        if (lanes.first()) {
          r.better[i] = better;
          r.equal[i] = equal;
        }
      });
}

GPUPS_KERNEL(rank_scores, RankScores)

}  // namespace gpups::kernels
