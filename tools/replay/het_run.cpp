// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/het_run.hpp"

#include <algorithm>
#include <cmath>

#include "cache/placement/het/het_replay.hpp"
#include "kernels/rows/number_type.hpp"

namespace gpups::tools {
namespace {

// Returns the bytes of a line: value, gradient, key, version and number of updates.
std::size_t bytes_of_line(TableOptions const& table) {
  return table.dim * (kernels::bytes_of_number(table.value_type) + sizeof(float)) + 3 * sizeof(std::uint64_t);
}

// Sets what only the end of a replay tells: the rows of each rank, and the memory of rows and caches.
void count_memory(std::vector<TableOptions> const& tables, cache::HetReplay const& replay, ReplayedRun& run) {
  auto const ranks = static_cast<std::size_t>(run.ranks);
  std::vector<std::size_t> rows(ranks), caches(ranks);
  run.rows_owned.resize(ranks);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto const owned = replay.rows_owned(t);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      run.rows_owned[rank] += owned[rank];
      rows[rank] += bytes_of_rows(tables[t], owned[rank], 0, run.ranks);
      caches[rank] += replay.cache_of(Rank{static_cast<std::uint32_t>(rank)}, t).size() * bytes_of_line(tables[t]);
    }
  }
  run.memory.rows = std::ranges::max(rows);
  run.het->memory = std::ranges::max(caches);  // a cache never has fewer lines than before
}

}  // namespace

ReplayedRun run_het_replay(ReplayCommand const& o, ReplayBatches const& batches, cache::Eviction eviction, int ranks) {
  auto const tables = batches.tables();
  auto const rows = batches.rows();
  cache::HetReplay::HetOptions options{.eviction = eviction,
                                       .ranks = ranks,
                                       .ranks_of_node = *o.ranks_of_node,
                                       .read_bound = o.het.read_bound,
                                       .write_bound = o.het.write_bound};
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto const lines = std::llround(o.het.cache_fraction * static_cast<double>(rows[t]));
    options.tables.push_back({cache::row_bytes(tables[t]), static_cast<std::size_t>(std::max(lines, 1LL))});
  }
  cache::HetReplay replay(options);

  auto const end = steps_to_replay(o, batches, ranks);
  ReplayedRun run;
  run.policy = kHet, run.ranks = ranks, run.steps = end - o.warm_up;
  run.received.resize(static_cast<std::size_t>(ranks));
  run.het.emplace(HetCounts{.eviction = eviction});
  for (std::int64_t step = 0; step < end; ++step) {
    for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
      for (auto const& [table, keys] : batches.parts(rank, step, ranks)) replay.announce(Rank{rank}, table, keys);
    }
    auto const counts = replay.advance();
    if (step < o.warm_up) continue;
    add_step(o, counts.sent, run);
    run.het->plain_bytes += counts.plain_bytes;
  }
  count_memory(tables, replay, run);
  return run;
}

}  // namespace gpups::tools
