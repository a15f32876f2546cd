// SPDX-License-Identifier: Apache-2.0
// Computes what ranks would send with each placement policy, what memory placement takes and how far it scales, without
// a cluster: for the keys of a run, or for keys with a Zipf distribution, any number of ranks, and a model of nodes and
// links. Prints a line of JSON for each number of ranks and policy, and a line for each policy if there are several
// numbers of ranks. The policies are those of the library, so the counts are those of a run.
//   replay --ranks 4 64 --policy static adaptive --optimizer rowwise_adagrad
//   replay --trace runs/wordnet
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "gpups/placement.hpp"
#include "kernels/base/check.hpp"
#include "tools/replay/batches.hpp"
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
    GPUPS_REQUIRE(placement_policy(policy) == PlacementPolicy::kStatic || lookahead >= kLeastLookahead,
                  "train.lookahead of the run is {} (with less than {}, '{}' moves no rows): replay the trace with "
                  "--lookahead {}, or with --policy static",
                  lookahead, kLeastLookahead, policy, kLeastLookahead);
  }
}

void replay_all(ReplayCommand const& options) {
  auto const batches = make_batches(options);
  require_policies_work(options, *batches);
  auto const all_ranks = options.ranks.empty() ? std::vector<int>{batches->default_ranks()} : options.ranks;
  std::map<std::string, std::vector<ReplayedSpeed>> speeds;
  for (int const ranks : all_ranks) {
    for (auto const& policy : options.policies) {
      auto const run = run_replay(options, *batches, placement_policy(policy), ranks);
      auto const line = to_json(options, run, batches->samples(ranks));
      print_line(line);
      speeds[policy].push_back({ranks, line.at("samples_per_s")});
    }
  }
  if (all_ranks.size() < 2) return;
  for (auto const& policy : options.policies) {
    auto const end = scaling_end(speeds[policy]);
    print_line({{"policy", policy}, {"scales_to", end ? nlohmann::ordered_json(*end) : nlohmann::ordered_json()}});
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
