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
  bool const plans = run.policy != PlacementPolicy::kStatic;
  return {.node = run.node_seconds / steps,
          .network = run.network_seconds / steps,
          .link = run.link_seconds / steps,
          .messages = o.message_us / 1e6 * kPhases * (run.ranks - 1),
          .planning = plans ? run.planning_seconds / steps / run.ranks : 0};
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
  auto const mb = [&](double of_all) { return of_all / rank_steps / 1e6; };
  auto const memory_mb = [](std::size_t bytes) { return static_cast<double>(bytes) / 1e6; };
  auto const time = step_time(o, run);
  return {{"policy", name_of(run.policy)},
          {"ranks", run.ranks},
          {"steps", run.steps},
          {"keys", keys / rank_steps},
          {"mb", mb(sent.value_bytes + sent.gradient_bytes + sent.move_bytes + sent.key_bytes)},
          {"mb_values", mb(sent.value_bytes)},
          {"mb_gradients", mb(sent.gradient_bytes)},
          {"mb_moves", mb(sent.move_bytes)},
          {"mb_keys", mb(sent.key_bytes)},
          {"mb_network", mb(run.network_bytes)},
          {"leased", static_cast<double>(sent.leased) / rank_steps},
          {"reads", static_cast<double>(sent.reads) / rank_steps},
          {"moves", static_cast<double>(sent.moves) / rank_steps},
          {"hit_rate", 1 - static_cast<double>(sent.reads + sent.moves) / keys},
          {"imbalance_received", imbalance(run.received)},
          {"imbalance_rows", imbalance(run.rows_owned)},
          {"memory_mb",
           {{"rows", memory_mb(run.memory.rows)},
            {"replicas", memory_mb(run.memory.replicas)},
            {"directory", memory_mb(run.memory.directory)},
            {"uses", memory_mb(run.memory.uses)}}},
          {"keys_planned_per_s", keys / run.planning_seconds},
          {"node_ms", time.node * 1e3},
          {"network_ms", time.network * 1e3},
          {"link_ms", time.link * 1e3},
          {"messages_ms", time.messages * 1e3},
          {"planning_ms", time.planning * 1e3},
          {"samples_per_s", samples / time.all()},
          {"limit", time.limit()}};
}

}  // namespace gpups::tools
