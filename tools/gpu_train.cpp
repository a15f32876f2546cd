// SPDX-License-Identifier: Apache-2.0
// Trains knowledge graph embeddings with gpups, and looks at what was learnt.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/metrics.hpp"
#include "trainer/reader.hpp"
#include "trainer/run_folder.hpp"
#include "trainer/saved_run.hpp"
#include "trainer/stop_signals.hpp"
#include "trainer/train.hpp"
#include "trainer/versions.hpp"

namespace {

using namespace gpups;

constexpr char kFooter[] =
    "\nExample:\n"
    "  gpu_train train examples/configs/wordnet.toml --ranks 2 --run runs/wordnet\n"
    "  gpu_train eval runs/wordnet --split test\n"
    "  gpu_train nearest runs/wordnet dog.n.01\n";

std::string version_text() {
  auto const v = trainer::versions();
  auto const text = [&v](char const* name) { return v.at(name).get<std::string>(); };
  std::string const cuda = text("cuda_architectures");
  return fmt::format("gpu_train {}\nhost code for: {}\nCUDA: {}\nCUDA devices: {}\ncompiler: {}", text("gpups"),
                     text("host_arch"), cuda.empty() ? "no" : "yes, for " + cuda, cuda_device_count(),
                     text("compiler"));
}

// Options of all commands, as settings of the configuration.
struct Common {
  std::vector<std::string> set;
  std::string device, threads, ranks;

  void add_to(CLI::App& command) {
    command.add_option("--set", set, "A setting that wins over the configuration's, as section.key=value")
        ->take_all()
        ->allow_extra_args(false);
    command.add_option("--device", device, "auto, host, cuda or cuda:0");
    command.add_option("--threads", threads, "Cores of a rank on the host; 0 is its even share");
    command.add_option("--ranks", ranks, "Ranks, as threads of this program");
  }
  std::vector<std::string> overrides() const {
    std::vector<std::string> all = set;
    if (!device.empty()) all.push_back("run.device=" + device);
    if (!threads.empty()) all.push_back("run.threads=" + threads);
    if (!ranks.empty()) all.push_back("run.ranks=" + ranks);
    return all;
  }
};

std::vector<Group> make_group(trainer::Config const& config) {
  auto const ranks = static_cast<int>(config.run.ranks);
  return ranks == 1 ? std::vector<Group>{Group::alone()} : Group::threads(ranks);
}

void run_train(std::string const& file, std::vector<std::string> const& overrides, bool resume) {
  trainer::StopSignals const signals;
  trainer::Config const config = trainer::load_config(file, overrides);
  std::filesystem::path const folder = config.run.folder.empty()
                                           ? trainer::default_run_folder(std::filesystem::path(file).stem().string())
                                           : std::filesystem::path(config.run.folder);
  trainer::RunFolder const writable(folder);  // or it is said before the data is read
  trainer::Dataset const data = trainer::read_dataset(config.data);
  run_ranks(make_group(config),
            [&](Group group) { trainer::train(config, data, group, {.folder = folder, .resume = resume}); });
}

void run_eval(std::string const& folder, std::vector<std::string> const& overrides, std::string const& split) {
  trainer::SavedRun const run = trainer::open_run(folder, overrides);
  run_ranks(make_group(run.saved.config), [&](Group group) {
    trainer::RankingMetrics const metrics = trainer::wait_evaluate_run(run, group, split);
    if (number(group.rank()) == 0) fmt::print("{}\n", trainer::to_json(metrics).dump());
  });
}

int run(int argc, char** argv) {
  CLI::App app("Trains knowledge graph embeddings on one or many GPUs, or on the host.", "gpu_train");
  app.footer(kFooter);
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  Common common;
  std::string file, folder, split = "test", run_folder;
  std::vector<std::string> names;
  std::size_t count = 10;
  bool resume = false;

  CLI::App* const train = app.add_subcommand("train", "Train as a configuration says");
  train->add_option("CONFIG", file, "Configuration, in TOML")->required();
  train->add_option("--run", run_folder, "Folder for results and checkpoints");
  train->add_flag("--resume", resume, "Go on from the folder's checkpoint, where there is one");
  CLI::App* const eval = app.add_subcommand("eval", "Print the metrics of a run's checkpoint as JSON");
  eval->add_option("RUN_FOLDER", folder, "Folder of a run")->required();
  eval->add_option("--split", split, "valid or test")->check(CLI::IsMember({"valid", "test"}));
  CLI::App* const nearest = app.add_subcommand("nearest", "Print the nearest neighbours of entities");
  nearest->add_option("RUN_FOLDER", folder, "Folder of a run")->required();
  nearest->add_option("NAME", names, "Entities")->required();
  nearest->add_option("--count", count, "Neighbours of each");
  for (CLI::App* command : {train, eval, nearest}) common.add_to(*command);
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  std::vector<std::string> overrides = common.overrides();
  if (!run_folder.empty()) overrides.push_back("run.folder=" + run_folder);
  if (*train) run_train(file, overrides, resume);
  if (*eval) run_eval(folder, overrides, split);
  if (*nearest) fmt::print("{}", trainer::nearest_in_run(trainer::open_run(folder, overrides), names, count));
  return 0;
}

}  // namespace

// Exits with 0 when done or stopped by a signal, 2 for a mistake of the user or the environment, 1 for any other.
int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (gpups::Error const& error) {
    fmt::print(stderr, "gpu_train: error: {}\n", error.what());
    return 2;
  } catch (std::exception const& error) {
    fmt::print(stderr, "gpu_train: error: {}\n", error.what());
    return 1;
  }
}
