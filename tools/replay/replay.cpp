// SPDX-License-Identifier: Apache-2.0
// Computes what ranks would send with each placement policy, what memory placement takes and how far it scales, without
// a cluster: for the keys of a run, or for keys with a Zipf distribution, any number of ranks, and a model of nodes and
// links. Prints a line of JSON for each number of ranks and policy, and a line for each policy if there are several
// numbers of ranks. The policies are those of the library, so the counts are those of a run; the protocol of HET can be
// compared with them.
//   replay --ranks 4 64 --policy static adaptive --optimizer rowwise_adagrad
//   replay --trace runs/wordnet
//   replay --policy static het --staleness 10 --read-bound 10 --write-bound 10 --cache lru tinylfu
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "gpups/placement.hpp"
#include "kernels/base/check.hpp"
#include "tools/replay/batches.hpp"
#include "tools/replay/het_run.hpp"
#include "tools/replay/options.hpp"
#include "tools/replay/replayed_run.hpp"
#include "tools/replay/report.hpp"

namespace gpups::tools {
namespace {

void print_line(nlohmann::ordered_json const& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);  // the next one may take minutes
}

// Throws Error if a policy cannot do in the replay what it does while training.
void require_policies_work(ReplayCommand const& options, ReplayBatches const& batches) {
  auto const lookahead = options.lookahead.value_or(batches.default_lookahead());
  for (auto const& policy : options.policies) {
    GPUPS_REQUIRE(
        policy == kHet || placement_policy(policy) == PlacementPolicy::kStatic || lookahead >= kLeastLookahead,
        "train.lookahead of the run is {} (with less than {}, '{}' moves no rows): replay the trace with "
        "--lookahead {}, or with --policy static",
        lookahead, kLeastLookahead, policy, kLeastLookahead);
  }
}

// A policy of the library, or the protocol of HET with a cache.
struct ComparedPolicy {
  std::string name;
  std::optional<cache::Eviction> cache;
  nlohmann::ordered_json to_json() const {
    nlohmann::ordered_json json{{"policy", name}};
    if (cache) json["cache"] = cache::name_of(*cache);
    return json;
  }
};

std::vector<ComparedPolicy> compared_policies(ReplayCommand const& options) {
  std::vector<ComparedPolicy> all;
  for (auto const& policy : options.policies) {
    if (policy != kHet) {
      all.push_back({policy, std::nullopt});
      continue;
    }
    for (auto const cache : options.het.caches) all.push_back({policy, cache});
  }
  return all;
}

void replay_all(ReplayCommand options) {
  auto const batches = make_batches(options);
  options.ranks_of_node = options.ranks_of_node.value_or(batches->default_ranks_of_node());
  options.bytes_min = options.bytes_min.value_or(batches->default_bytes_min());
  require_policies_work(options, *batches);
  auto const all_ranks = options.ranks.empty() ? std::vector<int>{batches->default_ranks()} : options.ranks;
  auto const policies = compared_policies(options);
  std::vector<std::vector<ReplayedSpeed>> speeds(policies.size());
  for (int const ranks : all_ranks) {
    for (std::size_t p = 0; p < policies.size(); ++p) {
      auto const& [policy, cache] = policies[p];
      auto const run = cache ? run_het_replay(options, *batches, *cache, ranks)
                             : run_replay(options, *batches, placement_policy(policy), ranks);
      auto const line = to_json(options, run, batches->samples(ranks));
      print_line(line);
      speeds[p].push_back({ranks, line.at("samples_per_s")});
    }
  }
  if (all_ranks.size() < 2) return;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    auto const end = scaling_end(speeds[p]);
    auto line = policies[p].to_json();
    line["scales_to"] = end ? nlohmann::ordered_json(*end) : nlohmann::ordered_json();
    print_line(line);
  }
}

}  // namespace
}  // namespace gpups::tools

int main(int argc, char** argv) {
  try {
    auto const options = gpups::tools::parse_replay_command(argc, argv);
    if (options) gpups::tools::replay_all(*options);
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "replay: error: {}\n", error.what());
    return 2;
  }
}
