// SPDX-License-Identifier: Apache-2.0
// Trains knowledge graph embeddings with gpups, and looks at what was learnt.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/check.hpp"
#include "tools/command_line.hpp"
#include "tools/standard_streams.hpp"
#include "trainer/folder_claim.hpp"
#include "trainer/metrics.hpp"
#include "trainer/reader.hpp"
#include "trainer/saved_run.hpp"
#include "trainer/stop_signals.hpp"
#include "trainer/train.hpp"

namespace {

using namespace gpups;

std::vector<Group> make_group(trainer::Config const& config) {
  auto const ranks = static_cast<int>(config.run.ranks);
  return ranks == 1 ? std::vector<Group>{Group::alone()} : Group::threads(ranks);
}

void run_train(tools::CommandLine const& line) {
  trainer::StopSignals const signals;
  std::signal(SIGPIPE, SIG_IGN);  // whoever read the progress may go; the training stays
  trainer::Config const config = trainer::load_config(line.config, line.overrides);
  GPUPS_REQUIRE(!line.resume || !config.run.folder.empty(),
                "--resume has no folder to go on in (a run without one makes a new folder): name it with --run");
  trainer::FolderClaim const claim(config.run.folder, std::filesystem::path(line.config).stem().string(), line.config);
  trainer::Dataset const data = trainer::read_dataset(config.data);
  run_ranks(make_group(config),
            [&](Group group) { trainer::train(config, data, group, {.folder = claim.path(), .resume = line.resume}); });
}

void run_eval(tools::CommandLine const& line) {
  trainer::SavedRun const run = trainer::open_run(line.run_folder, line.overrides);
  std::string text;
  run_ranks(make_group(run.saved.config), [&](Group group) {
    trainer::RankingMetrics const metrics = trainer::wait_evaluate_run(run, group, line.split);
    if (number(group.rank()) == 0) text = trainer::to_json(metrics).dump() + "\n";
  });
  tools::print_result(text);
}

void run_nearest(tools::CommandLine const& line) {
  trainer::SavedRun const run = trainer::open_run(line.run_folder, line.overrides);
  tools::print_result(trainer::nearest_in_run(run, line.names, line.count));
}

void run(int argc, char** argv) {
  std::optional<tools::CommandLine> const line = tools::parse_command_line(argc, argv);
  if (!line) return;
  if (line->command == "train") run_train(*line);
  if (line->command == "eval") run_eval(*line);
  if (line->command == "nearest") run_nearest(*line);
}

}  // namespace

// Exits with 0 when done or stopped by a signal, 2 for a mistake of the user or the environment, 1 for any other.
int main(int argc, char** argv) {
  tools::open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is an error like others
  try {
    run(argc, argv);
    return 0;
  } catch (Error const& error) {
    tools::print_error(error.what());
    return 2;
  } catch (std::filesystem::filesystem_error const& error) {
    tools::print_error(fmt::format("{} cannot be used ({}): choose another path, or change its permissions",
                                   error.path1().string(), error.code().message()));
    return 2;
  } catch (std::exception const& error) {
    tools::print_error(error.what());
    return 1;
  }
}
