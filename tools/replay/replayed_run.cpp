// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replayed_run.hpp"

#include <algorithm>

#include "cache/placement/announced_uses.hpp"
#include "cache/placement/owner_directory.hpp"
#include "cache/store/checks.hpp"
#include "gpups/store.hpp"
#include "kernels/base/check.hpp"

namespace gpups::tools {
namespace {

constexpr std::uint64_t kStepsKept = 4;  // replicas of these steps are kept at least

PlacementMemory memory_of(std::vector<TableOptions> const& tables, cache::PlacementReplay const& replay, int ranks) {
  double const fraction = StoreOptions{}.replica_fraction;
  PlacementMemory most;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    PlacementMemory of_rank;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      auto const& kept = replay.most_kept(t);
      auto const rows = kept.owned[rank], of_step = kept.replicas[rank];
      auto const between = std::max(
          {static_cast<std::uint64_t>(fraction * static_cast<double>(rows)), kStepsKept * of_step, kept.leases[rank]});
      auto const without = bytes_of_rows(tables[t], rows, 0, ranks);
      of_rank.rows += without;
      of_rank.replicas += bytes_of_rows(tables[t], rows, between + of_step, ranks) - without;
      of_rank.directory += cache::OwnerDirectory::bytes_for(kept.away[rank]);
      of_rank.uses += kept.uses[rank] * cache::AnnouncedUses::kBytesOfUse;
    }
    most.rows = std::max(most.rows, of_rank.rows);
    most.replicas = std::max(most.replicas, of_rank.replicas);
    most.directory = std::max(most.directory, of_rank.directory);
    most.uses = std::max(most.uses, of_rank.uses);
  }
  return most;
}

}  // namespace

std::size_t bytes_of_rows(TableOptions const& table, std::uint64_t rows, std::uint64_t replicas, int ranks) {
  std::size_t bytes = 0;
  for (auto const& line : cache::memory_plan(table, rows, replicas, 0, ranks, 0, false)) bytes += line.bytes;
  return bytes;
}

void add_step(ReplayCommand const& o, cache::ReplayedStep const& sent, ReplayedRun& run) {
  auto& all = run.sent;
  all.keys += sent.keys, all.leased += sent.leased, all.reads += sent.reads, all.updates += sent.updates,
      all.moves += sent.moves;
  all.value_bytes += sent.value_bytes, all.gradient_bytes += sent.gradient_bytes;
  all.move_bytes += sent.move_bytes, all.key_bytes += sent.key_bytes;
  double node = 0, network = 0;
  for (std::size_t rank = 0; rank < run.received.size(); ++rank) {
    run.received[rank] += sent.from_node[rank] + sent.from_others[rank];
    run.network_bytes += sent.from_others[rank];
    node = std::max(node, sent.from_node[rank] / o.node_gb_per_s / 1e9);
    network = std::max(network, sent.from_others[rank] / o.network_gb_per_s / 1e9);
  }
  run.node_seconds += node;
  run.network_seconds += network;
  run.link_seconds += std::max(node, network);
}

std::int64_t steps_to_replay(ReplayCommand const& o, ReplayBatches const& batches, int ranks) {
  std::int64_t const available = batches.steps(ranks);
  GPUPS_REQUIRE(o.warm_up + o.steps.value_or(1) <= available,
                "{} steps before the count and {} that are counted are to be replayed on {} ranks (the trace has {}): "
                "use fewer ranks, or smaller --warm-up and --steps",
                o.warm_up, o.steps.value_or(1), ranks, available);
  return o.steps ? o.warm_up + *o.steps : o.trace.empty() ? o.warm_up + 4 : available;
}

ReplayedRun run_replay(ReplayCommand const& o, ReplayBatches const& batches, PlacementPolicy policy, int ranks) {
  auto const tables = batches.tables();
  bool const on_one_node = ranks <= *o.ranks_of_node;
  bool const plans = policy != PlacementPolicy::kStatic;  // otherwise homes do not keep announced uses
  auto const lookahead = o.lookahead.value_or(batches.default_lookahead());
  cache::PlacementReplay::ReplayOptions options{.policy = policy,
                                                .ranks = ranks,
                                                .ranks_of_node = *o.ranks_of_node,
                                                .between_nodes = on_one_node ? 1 : o.between_nodes,
                                                .lookahead = plans ? lookahead : kLeastLookahead,
                                                .window = o.lookahead ? cache::kPolicyWindow : batches.window(),
                                                .staleness = o.staleness.value_or(batches.default_staleness())};
  cache::PlacementRules rules{.policy = policy, .bytes_min = cache::bytes_min_of(*o.bytes_min, on_one_node)};
  for (int rank = 0; rank < ranks && !on_one_node; ++rank) {
    rules.hosts.push_back(static_cast<std::uint32_t>(rank / *o.ranks_of_node));
  }
  for (auto const& table : tables) {
    options.tables.push_back({rules.bytes_of(table), rules.policy_of(table) == policy});
  }
  cache::PlacementReplay replay(options);

  auto const end = steps_to_replay(o, batches, ranks);
  ReplayedRun run;
  run.policy = name_of(policy), run.plans = plans, run.ranks = ranks, run.steps = end - o.warm_up;
  run.received.resize(static_cast<std::size_t>(ranks));
  double planned_before = 0;
  for (std::int64_t step = 0, announced = 0; step < end; ++step) {
    if (step == o.warm_up) planned_before = replay.planning_seconds();
    for (; announced < std::min(batches.steps(ranks), number(replay.announced_end())); ++announced) {
      for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
        for (auto const& [table, keys] : batches.parts(rank, announced, ranks)) {
          replay.announce(Rank{rank}, Clock{announced}, table, keys);
        }
      }
    }
    auto const sent = replay.advance();
    if (step >= o.warm_up) add_step(o, sent, run);
  }
  run.planning_seconds = replay.planning_seconds() - planned_before;
  run.rows_owned = replay.rows_owned();
  run.memory = memory_of(tables, replay, ranks);
  if (!plans) run.memory.uses = 0;
  return run;
}

}  // namespace gpups::tools
