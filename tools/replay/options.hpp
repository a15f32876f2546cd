// SPDX-License-Identifier: Apache-2.0
// The command line of replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/placement/het/het_cache.hpp"
#include "cache/placement/policy.hpp"
#include "gpups/table.hpp"

namespace gpups::tools {

// The fewest steps that batches are prepared ahead if policies can move their rows.
inline constexpr std::int64_t kLeastLookahead = 2;

// The policy `het`: the protocol of HET, which is compared with those of the library.
inline constexpr char const* kHet = "het";
struct HetCommand {
  std::uint64_t read_bound = 10, write_bound = 10;  // in updates of a row
  std::vector<cache::Eviction> caches{cache::Eviction::kLru};
  double cache_fraction = .1;  // lines of a rank's cache, as a fraction of the rows of a table
};

struct ReplayCommand {
  std::vector<int> ranks;                                   // empty: the ranks of the trace, else 4
  std::vector<std::string> policies{"static", "adaptive"};  // or kHet
  HetCommand het;
  std::string trace;                                        // folder; empty: keys with a Zipf distribution
  std::optional<std::int64_t> lookahead, staleness, steps;  // default: those of the trace, else 10, 0 and 4
  std::int64_t warm_up = 12;
  std::optional<std::int64_t> bytes_min;  // default: that of the trace, else -1; see StoreOptions::placement_bytes_min
  // Keys with a Zipf distribution.
  Optimizer::Kind optimizer = Optimizer::Kind::kRowwiseAdagrad;
  std::size_t batch = 32, features = 26, values = 10000000, dim = 64;
  std::optional<std::size_t> first_batch;  // of rank 0; default: as of the others
  double exponent = 1.05, own = 0;
  std::int64_t shift_every = 0;
  // The model of a step's time.
  std::optional<int> ranks_of_node;  // default: of the run on its host, else 8
  std::int64_t between_nodes = cache::kBetweenHosts;
  double node_gb_per_s = 200, network_gb_per_s = 25, message_us = 3;
};

// Parses the command line. Returns nothing if it asks for help, which is printed. Throws Error if it is not valid.
std::optional<ReplayCommand> parse_replay_command(int argc, char** argv);

}  // namespace gpups::tools
