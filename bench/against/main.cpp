// SPDX-License-Identifier: Apache-2.0
// Runs comparisons, which are called races: both sides alternately, at least five times and for at least a second.
// Prints the rate of each side, from its median time, and the ratio of the two.
//   bench_against --threads 2 gather find_hits
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/against/race.hpp"

namespace {

using gpups::bench::Race;
using gpups::bench::Side;
constexpr std::size_t kRunsMin = 5;
constexpr double kSecondsMin = 1;

double seconds(Side const& side) {
  using Clock = std::chrono::steady_clock;
  if (side.before) side.before();
  auto const start = Clock::now();
  side.run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The units per second of both sides.
struct Rates {
  double ours, theirs;
};

Rates run(Race const& race) {
  seconds(race.ours), seconds(race.theirs);  // warms up memory pages and caches
  std::vector<double> ours, theirs;
  for (double total = 0; ours.size() < kRunsMin || total < kSecondsMin; total += ours.back() + theirs.back()) {
    ours.push_back(seconds(race.ours));
    theirs.push_back(seconds(race.theirs));
  }
  return {race.ours.amount / median(ours), race.theirs.amount / median(theirs)};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares the speed of kernels with that of alternatives");
  int threads = 0;
  bool json = false;
  std::vector<std::string> names;
  app.add_option("--threads", threads, "cores; 0: all")->capture_default_str()->check(CLI::Range(0, 4096));
  app.add_flag("--json", json, "print a JSON object per line instead of a table");
  app.add_option("race", names, "the races to run; none: all");
  CLI11_PARSE(app, argc, argv);

  for (auto const& name : names) {
    auto const all = gpups::bench::races();
    if (std::none_of(all.begin(), all.end(), [&](auto const& entry) { return entry.name == name; })) {
      fmt::print(stderr, "bench_against: there is no race \"{}\" (nothing would be measured): use some of", name);
      for (auto const& entry : all) fmt::print(stderr, " {}", entry.name);
      fmt::print(stderr, "\n");
      return 2;
    }
  }
  gpups::Stream stream(gpups::Device::host(), threads);
  for (auto const& entry : gpups::bench::races()) {
    if (!names.empty() && std::find(names.begin(), names.end(), entry.name) == names.end()) continue;
    Race const race = entry.make(stream);
    Rates const rates = run(race);
    if (json) {
      nlohmann::ordered_json const line{{"race", entry.name},         {"unit", race.unit + "/s"},
                                        {"ours", rates.ours},         {"against", race.theirs.name},
                                        {"theirs", rates.theirs},     {"ratio", rates.ours / rates.theirs},
                                        {"threads", stream.threads()}};
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{:24} {:9.1f} M {}/s   {:28} {:9.1f}   ratio {:.2f}\n", entry.name, rates.ours * 1e-6, race.unit,
                 race.theirs.name, rates.theirs * 1e-6, rates.ours / rates.theirs);
    }
    std::fflush(stdout);
  }
}
