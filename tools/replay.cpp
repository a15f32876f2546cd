// SPDX-License-Identifier: Apache-2.0
// Computes what ranks would send with each placement policy, without a cluster: for batches whose keys have a Zipf
// distribution, any number of ranks, and a model of nodes and links. Prints a line of JSON for each policy and number
// of ranks. The policies are those of the library, so the counts are those of a run.
//   replay --ranks 4 64 --policy static adaptive --optimizer rowwise_adagrad
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "cache/placement/replay.hpp"
#include "gpups/table.hpp"
#include "kernels/check.hpp"
#include "kernels/row_lifecycle.hpp"
#include "kernels/update_rows.hpp"
#include "trainer/zipf.hpp"

namespace gpups::tools {
namespace {

struct Options {
  std::vector<int> ranks{4};
  std::vector<std::string> policies{"static", "adaptive"};
  Optimizer::Kind optimizer = Optimizer::Kind::kRowwiseAdagrad;
  std::int64_t lookahead = 10, warm_up = 12, steps = 8;
  std::size_t batch = 4096, features = 26, values = 10000000, dim = 64;
  double exponent = 1.05, own = 0;
  std::int64_t shift_every = 0;
  int ranks_of_node = 8;
  double node_gb_per_s = 200, network_gb_per_s = 25;
};

// The keys of all batches, as a function of rank and step.
class Trace {
 public:
  explicit Trace(Options const& o) : o_(o), zipf_(o.values, o.exponent) {}

  std::vector<Key> keys(std::uint32_t rank, std::int64_t step) const {
    std::mt19937_64 random(static_cast<std::uint64_t>(step) << 32 | rank);
    // Popularity shifts: from some steps on, other keys are frequent.
    std::uint64_t const shift = o_.shift_every == 0 ? 0 : static_cast<std::uint64_t>(step / o_.shift_every) * 7919;
    std::vector<Key> keys(o_.batch * o_.features);
    for (Key& key : keys) {
      bool const own = static_cast<double>(random() >> 11) * 0x1p-53 < o_.own;
      key = Key{(own ? std::uint64_t{rank} + 1 : 0) << 32 | (zipf_(random) + shift) % o_.values};
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }

 private:
  Options const& o_;
  trainer::Zipf zipf_;
};

cache::RowBytes row_bytes(Options const& o) {
  auto const value = static_cast<double>(o.dim * sizeof(float));
  auto const state = static_cast<double>(kernels::state_columns({.kind = o.optimizer}, o.dim) * sizeof(float));
  return {.read = value, .update = value, .move = value + state + kernels::kLifecycleWords * sizeof(std::uint32_t)};
}

double sum(std::vector<double> const& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

// Returns the largest number over the mean.
template <class T>
double imbalance(std::vector<T> const& numbers) {
  double const all = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  return all == 0 ? 1
                  : static_cast<double>(*std::max_element(numbers.begin(), numbers.end())) *
                        static_cast<double>(numbers.size()) / all;
}

nlohmann::ordered_json replay(Options const& o, Trace const& trace, PlacementPolicy policy, int ranks) {
  cache::PlacementReplay replay({policy, ranks, o.ranks_of_node, row_bytes(o)});
  std::int64_t announced = 0;
  cache::ReplayedStep all;
  std::vector<double> received(static_cast<std::size_t>(ranks));
  double seconds = 0;
  for (std::int64_t step = 0; step < o.warm_up + o.steps; ++step) {
    for (; announced <= std::max<std::int64_t>(step - 2, 0) + o.lookahead; ++announced) {
      for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
        replay.announce(Rank{rank}, Clock{announced}, trace.keys(rank, announced));
      }
    }
    auto const sent = replay.advance();
    if (step < o.warm_up) continue;
    all.keys += sent.keys, all.reads += sent.reads, all.updates += sent.updates, all.moves += sent.moves;
    all.key_bytes += sent.key_bytes;
    double slowest = 0;
    for (std::size_t rank = 0; rank < received.size(); ++rank) {
      received[rank] += sent.from_node[rank] + sent.from_others[rank];
      slowest =
          std::max({slowest, sent.from_node[rank] / o.node_gb_per_s, sent.from_others[rank] / o.network_gb_per_s});
    }
    seconds += slowest / 1e9;
  }
  double const rank_steps = static_cast<double>(ranks) * static_cast<double>(o.steps);
  auto const bytes = row_bytes(o);
  auto const mb = [&](double of_all) { return of_all / rank_steps / 1e6; };
  double const reads = static_cast<double>(all.reads) * bytes.read;
  double const updates = static_cast<double>(all.updates) * bytes.update;
  double const moves = static_cast<double>(all.moves) * bytes.move;
  return {{"policy", name_of(policy)},
          {"ranks", ranks},
          {"keys", static_cast<double>(all.keys) / rank_steps},
          {"mb", mb(sum(received) + all.key_bytes)},
          {"mb_values", mb(reads)},
          {"mb_gradients", mb(updates)},
          {"mb_moves", mb(moves)},
          {"mb_keys", mb(all.key_bytes)},
          {"moves", static_cast<double>(all.moves) / rank_steps},
          {"hit_rate", 1 - static_cast<double>(all.reads + all.moves) / static_cast<double>(all.keys)},
          {"imbalance_received", imbalance(received)},
          {"imbalance_rows", imbalance(replay.rows_owned())},
          {"link_ms", seconds / static_cast<double>(o.steps) * 1e3}};
}

void add_options(CLI::App& app, Options& o) {
  std::map<std::string, Optimizer::Kind> const optimizers{{"sgd", Optimizer::Kind::kSgd},
                                                          {"rowwise_adagrad", Optimizer::Kind::kRowwiseAdagrad},
                                                          {"adagrad", Optimizer::Kind::kAdagrad},
                                                          {"adam", Optimizer::Kind::kAdam}};
  auto const number = [&](char const* name, auto& to, double least, double most, char const* what) {
    app.add_option(name, to, what)->check(CLI::Range(least, most))->capture_default_str();
  };
  app.add_option("--ranks", o.ranks, "numbers of ranks")->check(CLI::Range(2, 4096))->capture_default_str();
  app.add_option("--policy", o.policies, "policies; default: static adaptive");
  app.add_option("--optimizer", o.optimizer, "optimizer of the rows; default: rowwise_adagrad")
      ->transform(CLI::CheckedTransformer(optimizers));
  number("--lookahead", o.lookahead, 2, 1000, "steps that batches are prepared ahead");
  number("--warm-up", o.warm_up, 0, 1e6, "steps that are not counted");
  number("--steps", o.steps, 1, 1e6, "steps that are counted");
  number("--batch", o.batch, 1, 1 << 20, "samples of a rank in a step");
  number("--features", o.features, 1, 1024, "keys of a sample");
  number("--values", o.values, 1, 1 << 30, "number of keys that batches are drawn from");
  number("--dim", o.dim, 1, 65536, "numbers in a row");
  number("--exponent", o.exponent, 0.01, 10, "exponent of the Zipf distribution; not 1");
  number("--own", o.own, 0, 1, "share of the entries whose keys only one rank uses");
  number("--shift-every", o.shift_every, 0, 1e6, "steps after which other keys become frequent; 0: never");
  number("--ranks-of-node", o.ranks_of_node, 1, 4096, "ranks that share a node");
  number("--node-gb-per-s", o.node_gb_per_s, 0.001, 1e5, "GB/s that a rank receives from ranks of its node");
  number("--network-gb-per-s", o.network_gb_per_s, 0.001, 1e5, "GB/s that a rank receives from other nodes");
}

}  // namespace
}  // namespace gpups::tools

int main(int argc, char** argv) {
  gpups::tools::Options o;
  CLI::App app("Computes what ranks would send with placement policies, without a cluster");
  gpups::tools::add_options(app, o);
  CLI11_PARSE(app, argc, argv);
  try {
    GPUPS_REQUIRE(o.exponent != 1, "--exponent is {} (it must not be 1): use 1.05", o.exponent);
    gpups::tools::Trace const trace(o);
    for (int const ranks : o.ranks) {
      for (auto const& name : o.policies) {
        auto const policy = gpups::placement_policy(name);
        fmt::print("{}\n", gpups::tools::replay(o, trace, policy, ranks).dump());
      }
    }
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "replay: error: {}\n", error.what());
    return 2;
  }
}
