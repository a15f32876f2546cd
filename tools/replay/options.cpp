// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "gpups/placement.hpp"
#include "kernels/base/check.hpp"

namespace gpups::tools {
namespace {

// Returns a check of numbers. CLI::Range accepts nan, and prints six digits after the point.
CLI::Validator in_range(double least, double most) {
  auto const range = fmt::format("{} to {}", least, most);
  return CLI::Validator(
      [=](std::string const& text) {
        double const number = std::strtod(text.c_str(), nullptr);
        return number >= least && number <= most ? std::string() : fmt::format("{} is not in {}", text, range);
      },
      range);
}

// Adds an option for a number in a range.
template <class T>
CLI::Option* number_option(CLI::App& app, char const* name, T& to, double least, double most, char const* what) {
  return app.add_option(name, to, what)->check(in_range(least, most))->capture_default_str();
}

// Removes names that were before.
template <class T>
void remove_repeated(std::vector<T>& all) {
  auto end = all.begin();
  for (auto one = all.begin(); one != all.end(); ++one) {
    if (std::find(all.begin(), end, *one) == end) *end++ = *one;
  }
  all.erase(end, all.end());
}

void require_policy(std::string const& name) {
  std::vector<std::string> names{kHet};
  for (auto const policy : kPlacementPolicies) {
    if (policy != PlacementPolicy::kAuto) names.insert(names.end() - 1, name_of(policy));
  }
  GPUPS_REQUIRE(name != name_of(PlacementPolicy::kAuto),
                "--policy auto was given (a replay has no hosts on which it depends): give static or adaptive");
  GPUPS_REQUIRE(std::find(names.begin(), names.end(), name) != names.end(),
                "--policy has '{}' (the policies of a replay are {}): use some of them", name, fmt::join(names, ", "));
}

Optimizer::Kind optimizer_kind(std::string const& name) {
  static std::map<std::string, Optimizer::Kind> const kinds{{"sgd", Optimizer::Kind::kSgd},
                                                            {"rowwise_adagrad", Optimizer::Kind::kRowwiseAdagrad},
                                                            {"adagrad", Optimizer::Kind::kAdagrad},
                                                            {"adam", Optimizer::Kind::kAdam}};
  auto const found = kinds.find(name);
  GPUPS_REQUIRE(found != kinds.end(), "--optimizer is '{}' (unknown): use one of sgd, rowwise_adagrad, adagrad, adam",
                name);
  return found->second;
}

void add_zipf_options(CLI::App& app, ReplayCommand& o, CLI::Option* trace) {
  app.add_option_function<std::string>(
         "--optimizer", [&o](std::string const& name) { o.optimizer = optimizer_kind(name); },
         "optimizer of the rows: sgd, rowwise_adagrad (default), adagrad or adam; not with --trace")
      ->option_text("NAME")
      ->excludes(trace);
  number_option(app, "--batch", o.batch, 1, 1 << 20, "samples of a rank in a step")->excludes(trace);
  app.add_option("--first-batch", o.first_batch, "samples of rank 0 in a step; default: as many as of the others")
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(trace);
  number_option(app, "--features", o.features, 1, 1024, "keys of a sample")->excludes(trace);
  number_option(app, "--values", o.values, 1, 1 << 30, "number of keys that batches are drawn from")->excludes(trace);
  number_option(app, "--dim", o.dim, 1, 65536, "numbers in a row")->excludes(trace);
  number_option(app, "--exponent", o.exponent, 0.01, 10, "exponent of the Zipf distribution; not 1")->excludes(trace);
  number_option(app, "--own", o.own, 0, 1, "share of the entries whose keys only one rank uses")->excludes(trace);
  number_option(app, "--shift-every", o.shift_every, 0, 1e6, "steps after which other keys become frequent; 0: never")
      ->excludes(trace);
}

std::vector<CLI::Option*> add_het_options(CLI::App& app, HetCommand& o) {
  return {number_option(app, "--read-bound", o.read_bound, 0, 1e15,
                        "updates of a row that a cached copy may lack when it is read; with --policy het"),
          number_option(app, "--write-bound", o.write_bound, 0, 1e15,
                        "updates of a cached row that a rank keeps to itself; with --policy het"),
          app.add_option_function<std::vector<std::string>>(
                 "--cache",
                 [&o](std::vector<std::string> const& names) {
                   o.caches.clear();
                   for (auto const& name : names) o.caches.push_back(cache::eviction_of(name));
                 },
                 "caches: lru (default), lfu, tinylfu; with --policy het")
              ->option_text("NAME ..."),
          number_option(app, "--cache-fraction", o.cache_fraction, 1e-9, 1,
                        "lines of a rank's cache as a fraction of --values, or of the rows of a table that the trace "
                        "uses; with --policy het")};
}

// Throws Error if options were given that none of the policies has.
void require_options_work(ReplayCommand const& o, std::vector<CLI::Option*> const& of_het,
                          std::vector<CLI::Option*> const& of_others, CLI::Option* staleness) {
  auto const hets = std::count(o.policies.begin(), o.policies.end(), kHet);
  for (auto const* const option : of_het) {
    GPUPS_REQUIRE(hets > 0 || option->count() == 0,
                  "{} was given without the policy het (the other policies have no such cache): add het to --policy",
                  option->get_name());
  }
  GPUPS_REQUIRE(hets < std::ssize(o.policies) || staleness->count() == 0,
                "--staleness was given and the only policy is het (its bounds are numbers of updates, not of steps): "
                "give --read-bound and --write-bound");
  for (auto const* const option : of_others) {
    GPUPS_REQUIRE(
        hets < std::ssize(o.policies) || option->count() == 0,
        "{} was given and the only policy is het (no row moves, and batches are not announced): leave it out, "
        "or add adaptive to --policy",
        option->get_name());
  }
}

}  // namespace

std::optional<ReplayCommand> parse_replay_command(int argc, char** argv) {
  ReplayCommand o;
  CLI::App app("Computes what ranks would send with placement policies, and how far they scale, without a cluster");
  app.add_option("--ranks", o.ranks, "numbers of ranks; default: those of the trace, else 4")
      ->check(CLI::Range(2, 4096));
  app.add_option("--policy", o.policies,
                 "policies: static, relocate, adaptive, random, or het, the protocol of HET; default: static adaptive")
      ->option_text("NAME ...");
  auto* const trace = app.add_option(
      "--trace", o.trace, "folder of a run with placement.trace_steps; default: keys with a Zipf distribution");
  auto* const staleness =
      app.add_option("--staleness", o.staleness,
                     "steps by which reads may be behind, with as many copies as this needs; default: that of the "
                     "trace, else 0; not for het")
          ->check(CLI::Range(0, 65536));
  auto const of_het = add_het_options(app, o.het);
  std::vector<CLI::Option*> of_others{
      app.add_option("--lookahead", o.lookahead,
                     "steps that batches are prepared ahead; default: that of the trace, else 10; not for het")
          ->check(CLI::Range(kLeastLookahead, std::int64_t{1000})),
      app.add_option("--bytes-min", o.bytes_min,
                     "adaptive leaves rows at home whose value and gradient take fewer bytes; -1: 384 on one node, "
                     "else 64; default: that of the trace, else -1; not for het")
          ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 30))};
  number_option(app, "--warm-up", o.warm_up, 0, 1e6, "steps that are not counted");
  app.add_option("--steps", o.steps, "steps that are counted; default: the rest of the trace, else 4")
      ->check(CLI::Range(1, 1000000));
  add_zipf_options(app, o, trace);
  app.add_option("--ranks-of-node", o.ranks_of_node,
                 "ranks that share a node; default: those of the trace that shared a host, else 8")
      ->check(CLI::Range(1, 4096));
  of_others.push_back(number_option(app, "--between-nodes", o.between_nodes, 1, 1000,
                                    "what a byte between nodes costs for adaptive, if one within a node costs 1"));
  number_option(app, "--node-gb-per-s", o.node_gb_per_s, 0.001, 1e5, "GB/s that a rank receives from its node");
  number_option(app, "--network-gb-per-s", o.network_gb_per_s, 0.001, 1e5, "GB/s that a rank receives from others");
  number_option(app, "--message-us", o.message_us, 0, 1e6, "microseconds for a message to a rank and one from it");
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return std::nullopt;
    }
    throw Error(fmt::format("the command cannot be understood ({}): see replay --help", error.what()));
  }
  std::for_each(o.policies.begin(), o.policies.end(), require_policy);
  remove_repeated(o.policies);
  remove_repeated(o.het.caches);
  require_options_work(o, of_het, of_others, staleness);
  GPUPS_REQUIRE(o.exponent != 1, "--exponent is {} (it must not be 1): use 1.05", o.exponent);
  std::sort(o.ranks.begin(), o.ranks.end());
  o.ranks.erase(std::unique(o.ranks.begin(), o.ranks.end()), o.ranks.end());
  return o;
}

}  // namespace gpups::tools
