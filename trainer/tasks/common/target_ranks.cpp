// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/target_ranks.hpp"

#include <algorithm>

#include "kernels/score/rank_scores.hpp"

namespace gpups::trainer {

std::size_t score_rows_at_once(std::size_t columns) {
  return std::clamp<std::size_t>((std::size_t{16} << 20) / std::max<std::size_t>(columns, 1), 16, 1024);
}

std::vector<TargetRank> wait_target_ranks(Stream& stream, MatrixView<float const> scores, QueryTargets const& queries,
                                          View<float const> target_scores) {
  std::size_t const count = queries.targets.size(), tiles = kernels::rank_tiles(scores.columns());
  Array<std::uint32_t> const better(stream.device(), count * tiles), equal(stream.device(), count * tiles);
  Array<std::uint32_t> const targets =
      target_scores.empty() ? to_device(stream, queries.targets) : Array<std::uint32_t>(stream.device(), 0);
  Array<std::uint32_t> const on_device[] = {to_device(stream, queries.rows), to_device(stream, queries.offsets),
                                            to_device(stream, queries.left_out)};
  kernels::rank_scores(stream, {.scores = scores,
                                .targets = targets,
                                .target_scores = target_scores,
                                .rows = on_device[0],
                                .known_offsets = on_device[1],
                                .known = on_device[2],
                                .better = better,
                                .equal = equal});
  std::vector<std::uint32_t> const b = to_host(stream, better.view()), e = to_host(stream, equal.view());
  auto const total = [tiles](std::vector<std::uint32_t> const& counts, std::size_t query) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + 1 < tiles; ++i) sum += counts[query * tiles + i];
    return sum - counts[query * tiles + tiles - 1];
  };
  std::vector<TargetRank> ranks;
  for (std::size_t q = 0; q < count; ++q) ranks.push_back({total(b, q), total(e, q)});
  return ranks;
}

}  // namespace gpups::trainer
