// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace gpups::tools {
namespace {

constexpr int kPhases = 2;  // of a round; a rank sends every other rank a message in each

// Returns the largest number over the mean.
template <class T>
double imbalance(std::vector<T> const& numbers) {
  double const all = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  if (all == 0) return 1;
  auto const most = static_cast<double>(*std::max_element(numbers.begin(), numbers.end()));
  return most * static_cast<double>(numbers.size()) / all;
}

}  // namespace

char const* StepTime::limit() const {
  double const most = std::max({link, messages, planning});
  if (most == planning) return "planning";
  if (most == messages) return "messages";
  return network >= node ? "network" : "node";
}

StepTime step_time(ReplayCommand const& o, ReplayedRun const& run) {
  auto const steps = static_cast<double>(run.steps);
  return {.node = run.node_seconds / steps,
          .network = run.network_seconds / steps,
          .link = run.link_seconds / steps,
          .messages = o.message_us / 1e6 * kPhases * (run.ranks - 1),
          .planning = run.plans ? run.planning_seconds / steps / run.ranks : 0};
}

std::optional<int> scaling_end(std::span<ReplayedSpeed const> speeds) {
  std::optional<int> end;
  for (std::size_t i = speeds.size(); i-- > 1;) {
    auto const& [fewer, slow] = speeds[i - 1];
    auto const& [more, fast] = speeds[i];
    double const doublings = std::log2(static_cast<double>(more) / fewer);
    if (std::pow(fast / slow, 1 / doublings) >= kGainLeast) break;
    end = fewer;
  }
  return end;
}

nlohmann::ordered_json to_json(ReplayCommand const& o, ReplayedRun const& run, double samples) {
  auto const& sent = run.sent;
  double const rank_steps = static_cast<double>(run.ranks) * static_cast<double>(run.steps);
  auto const keys = static_cast<double>(sent.keys);
  auto const mean = [&](std::uint64_t of_all) { return static_cast<double>(of_all) / rank_steps; };
  auto const mb = [&](double of_all) { return of_all / rank_steps / 1e6; };
  auto const memory_mb = [](std::size_t bytes) { return static_cast<double>(bytes) / 1e6; };
  auto const time = step_time(o, run);
  nlohmann::ordered_json line{{"policy", run.policy}};
  if (run.het) {
    line.update({{"cache", name_of(run.het->eviction)},
                 {"cache_fraction", o.het.cache_fraction},
                 {"read_bound", o.het.read_bound},
                 {"write_bound", o.het.write_bound}});
  }
  line.update({{"ranks", run.ranks},
               {"steps", run.steps},
               {"keys", keys / rank_steps},
               {"mb", mb(sent.value_bytes + sent.gradient_bytes + sent.move_bytes + sent.key_bytes)},
               {"mb_values", mb(sent.value_bytes)},
               {"mb_gradients", mb(sent.gradient_bytes)}});
  if (!run.het) line["mb_moves"] = mb(sent.move_bytes);
  line.update({{"mb_keys", mb(sent.key_bytes)}, {"mb_network", mb(run.network_bytes)}});
  if (run.het) {
    line.update({{"mb_plain", mb(run.het->plain_bytes)},
                 {"cached", mean(sent.leased)},
                 {"reads", mean(sent.reads)},
                 {"updates", mean(sent.updates)}});
  } else {
    line.update({{"leased", mean(sent.leased)}, {"reads", mean(sent.reads)}, {"moves", mean(sent.moves)}});
  }
  line.update({{"hit_rate", 1 - static_cast<double>(sent.reads + sent.moves) / keys},
               {"imbalance_received", imbalance(run.received)},
               {"imbalance_rows", imbalance(run.rows_owned)},
               {"memory_mb", {{"rows", memory_mb(run.memory.rows)}}}});
  if (run.het) {
    line["memory_mb"]["cache"] = memory_mb(run.het->memory);
  } else {
    line["memory_mb"].update({{"replicas", memory_mb(run.memory.replicas)},
                              {"directory", memory_mb(run.memory.directory)},
                              {"uses", memory_mb(run.memory.uses)}});
    line["keys_planned_per_s"] = keys / run.planning_seconds;
  }
  line.update({{"node_ms", time.node * 1e3},
               {"network_ms", time.network * 1e3},
               {"link_ms", time.link * 1e3},
               {"messages_ms", time.messages * 1e3}});
  if (!run.het) line["planning_ms"] = time.planning * 1e3;
  line.update({{"samples_per_s", samples / time.all()}, {"limit", time.limit()}});
  return line;
}

}  // namespace gpups::tools
