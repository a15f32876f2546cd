// SPDX-License-Identifier: Apache-2.0
// Counts the rows that a rank reads in a step and does not own, for a configuration of gpu_train: with owners by the
// hash of the key, and with owners by the parts of placement.initial = "graph". Batches and negatives are those of the
// trainer. Trains nothing. Prints a line of JSON.
//   remote_rows examples/configs/fb15k-237.toml --ranks 4 --set data.folder=FOLDER --set placement.initial=graph
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "kernels/base/hash.hpp"
#include "trainer/accounts/memory_plan.hpp"
#include "trainer/config/config.hpp"
#include "trainer/placement/placement.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::bench {
namespace {

using namespace trainer;

struct Options {
  std::string config;
  std::vector<std::string> settings;
  std::uint32_t ranks = 4;
  std::int64_t steps = 100;
};

// The rank that owns each key of a table, if the placement has the key.
using Owners = std::unordered_map<std::uint64_t, std::uint32_t>;

struct Counts {
  std::uint64_t read = 0, remote_by_hash = 0, remote_by_part = 0;  // distinct rows, summed over ranks and steps
};

std::vector<Owners> owners_of(Placement const& placement, std::size_t tables, std::uint32_t ranks) {
  std::vector<Owners> owners(tables);
  for (std::uint32_t table = 0; table < tables; ++table) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      std::uint32_t const begin = first_microbatch(rank, ranks, placement.parts());
      std::uint32_t const end = first_microbatch(rank + 1, ranks, placement.parts());
      for (Key const key : placement.keys(TableId{table}, begin, end)) owners[table].emplace(number(key), rank);
    }
  }
  return owners;
}

// Adds the distinct keys of one rank's step.
void count(TaskStep const& step, std::uint32_t rank, std::uint32_t ranks, std::vector<Owners> const& owners,
           std::vector<Counts>& counts) {
  for (TableBatch const& batch : step.tables()) {
    std::vector<Key> keys(batch.keys.begin(), batch.keys.end());
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::size_t const table = number(batch.table);
    Counts& sums = counts[table];
    for (Key const key : keys) {
      std::uint32_t const home = kernels::home_of(key, ranks);
      auto const owner = table < owners.size() ? owners[table].find(number(key)) : Owners::const_iterator{};
      bool const placed = table < owners.size() && owner != owners[table].end();
      ++sums.read;
      sums.remote_by_hash += home != rank ? 1 : 0;
      sums.remote_by_part += (placed ? owner->second : home) != rank ? 1 : 0;
    }
  }
}

void run(Options const& o) {
  Config const config = load_config(o.config, {o.settings.begin(), o.settings.end()});
  auto const data = read_data(config);
  std::uint32_t const microbatches = new_microbatches(config, static_cast<int>(o.ranks));
  auto const placement = data->placement(config, microbatches);
  auto const task = data->make_task(config, {.group = Group::alone(),
                                             .device = Device::host(),
                                             .microbatches = microbatches,
                                             .schedule_steps = 1,
                                             .placement = placement});
  std::vector<std::string> names;
  for (TableOptions const& table : task->tables()) names.push_back(table.name);
  auto const owners = placement != nullptr ? owners_of(*placement, names.size(), o.ranks) : std::vector<Owners>();
  std::vector<Counts> counts(names.size());
  Stream stream(Device::host());
  for (std::uint32_t rank = 0; rank < o.ranks; ++rank) {
    BatchSampler batches(data->samples(), {.batch_size = static_cast<std::uint32_t>(config.train.batch_size),
                                           .microbatches = microbatches,
                                           .seed = static_cast<std::uint64_t>(config.train.seed),
                                           .block_samples = data->block(),
                                           .same_batches = config.train.reuse_batches,
                                           .placement = placement,
                                           .rank = Rank{rank},
                                           .ranks = o.ranks});
    for (std::int64_t t = 0; t < o.steps; ++t) {
      Batch const batch = batches.make(Clock{t});
      if (!batch.samples.empty()) count(*task->prepare(stream, batch), rank, o.ranks, owners, counts);
    }
  }
  auto const per_step = [&](std::uint64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(o.ranks) / static_cast<double>(o.steps);
  };
  nlohmann::ordered_json line{{"ranks", o.ranks}, {"steps", o.steps}, {"placement", config.placement.initial}};
  Counts all;
  auto const add = [&](std::string const& name, Counts const& c) {
    line[name] = {{"read", per_step(c.read)}, {"remote_by_hash", per_step(c.remote_by_hash)}};
    if (placement != nullptr) line[name]["remote_by_part"] = per_step(c.remote_by_part);
  };
  for (std::size_t table = 0; table < names.size(); ++table) {
    add(names[table], counts[table]);
    all.read += counts[table].read, all.remote_by_hash += counts[table].remote_by_hash;
    all.remote_by_part += counts[table].remote_by_part;
  }
  add("all", all);
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Counts the rows that ranks read and do not own");
  app.add_option("config", o.config, "configuration of gpu_train")->required();
  app.add_option("--set", o.settings, "a setting that replaces one of the configuration");
  app.add_option("--ranks", o.ranks, "number of ranks")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--steps", o.steps, "number of steps")->check(CLI::Range(1, 1000000))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    gpups::bench::run(o);
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "remote_rows: error: {}\n", error.what());
    return 2;
  }
}
