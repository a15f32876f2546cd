// SPDX-License-Identifier: Apache-2.0
// The program gpu_train: trains embedding models with gpups, evaluates, predicts and exports.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/check.hpp"
#include "tools/command_line.hpp"
#include "tools/doctor/doctor.hpp"
#include "tools/hangup.hpp"
#include "tools/ranks.hpp"
#include "tools/standard_streams.hpp"
#include "tools/trials/trials.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/stop_signals.hpp"
#include "trainer/report/report.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/run/train.hpp"
#include "trainer/saved/run_folder_lock.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/click/text/convert.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace {

using namespace gpups;

namespace fs = std::filesystem;

void run_train(tools::CommandLine const& line) {
  std::signal(SIGPIPE, SIG_IGN);  // training goes on if the reader of its output ends
  trainer::Stopwatch total;
  total.start();
  trainer::StopSignals const signals;
  tools::RankRunner ranks;
  std::optional<trainer::Config> config;
  std::optional<trainer::RunFolderLock> folder_lock;
  ranks.when_stopped([&folder_lock] { folder_lock.reset(); });
  ranks.prepare([&] {
    config = trainer::load_config(line.config, line.overrides);
    GPUPS_REQUIRE(!line.resume || !config->run.folder.empty(),
                  "--resume has no folder to continue in (a run without --run makes a new folder): give it with --run");
    if (!line.resume) trainer::require_effect(*config, line.config);
    if (ranks.is_root()) folder_lock.emplace(config->run.folder, fs::path(line.config).stem().string(), line.config);
  });
  std::unique_ptr<trainer::Data const> data;
  std::once_flag read;
  std::string const command = line.resume ? "train --resume" : "train";
  ranks.run(command, config, folder_lock ? fs::absolute(folder_lock->path()).string() : "", [&](Group const& group) {
    fs::path const folder = folder_lock ? folder_lock->path() : fs::path(group.broadcast_data());
    GPUPS_REQUIRE(folder_lock || trainer::RunFolderLock::is_locked(folder),
                  "rank {} has no access to the run's folder {} of rank 0 (every rank writes its part of a checkpoint "
                  "there): choose a folder that all machines share with --run",
                  number(group.rank()), folder.string());
    int const ranks_here = ranks.processes() ? 1 : group.size();
    std::call_once(read, [&] {
      data = trainer::read_data(*config);
      trainer::require_memory_for(*config, *data, group, ranks_here);
    });
    trainer::train(
        *config, *data, group,
        {.folder = folder, .resume = line.resume, .ranks_here = ranks_here, .seconds_of_process = total.seconds()});
  });
}

void run_eval(tools::CommandLine const& line) {
  tools::RankRunner ranks;
  std::optional<trainer::SavedRun> saved;
  std::optional<trainer::Config> config;
  ranks.prepare([&] {
    saved = trainer::open_run(line.run_folder, line.overrides);
    config = saved->saved.config;
  });
  std::string text;
  ranks.run("eval --split " + line.split, config, "", [&](Group const& group) {
    trainer::Metrics const metrics = trainer::wait_evaluate_run(*saved, group, line.split);
    if (number(group.rank()) == 0) text = metrics.json.dump() + "\n";
  });
  tools::print_result(text);
}

void require_one_process(tools::CommandLine const& line) {
  GPUPS_REQUIRE(Group::launch_info().ranks == 1,
                "{} was started as {} processes (each would do the same): start one process, without a launcher",
                line.command, Group::launch_info().ranks);
}

void run_trials(tools::CommandLine const& line, void (*run)(tools::CommandLine const&)) {
  std::signal(SIGPIPE, SIG_IGN);  // as in run_train()
  require_one_process(line);
  run(line);
}

void print_notices(std::vector<std::string> const& notices) {
  for (std::string const& notice : notices) trainer::print_line(stderr, notice);
}

std::vector<trainer::QueriedName> named(tools::CommandLine const& line) {
  std::vector<trainer::QueriedName> names;
  for (std::string const& name : line.names) names.push_back({name});
  return names;
}

void run_nearest(tools::CommandLine const& line) {
  require_one_process(line);
  trainer::SavedRun const run = trainer::open_run(line.run_folder, line.overrides);
  std::vector<std::string> notices;
  tools::print_result(trainer::nearest_in_run(run, named(line), line.count, notices));
  print_notices(notices);
}

void run_recommend(tools::CommandLine const& line) {
  require_one_process(line);
  auto const users = line.file.empty() ? named(line) : trainer::read_users(line.file);
  std::vector<std::string> notices;
  tools::print_result(trainer::recommend_in_run(line.run_folder, line.overrides, users, line.count, notices));
  print_notices(notices);
}

void run_predict(tools::CommandLine const& line) {
  require_one_process(line);
  tools::ResultFile out(line.out);
  std::vector<std::string> notices;
  std::string text;
  trainer::predict_run(line.run_folder, line.overrides, line.file, notices, [&](std::span<float const> predictions) {
    text.clear();
    for (float p : predictions) fmt::format_to(std::back_inserter(text), "{}\n", p);
    out.write(text);
  });
  out.finish();
  print_notices(notices);
}

void run_export(tools::CommandLine const& line) {
  require_one_process(line);
  print_notices(trainer::export_run(line.run_folder, line.overrides, line.out, trainer::model_format(line.format)));
}

void run_report(tools::CommandLine const& line) {
  require_one_process(line);
  if (line.out == "-") return tools::print_result(trainer::report::page_of_folder(line.run_folder));
  tools::print_result(trainer::report::write_report(line.run_folder, line.out).string() + "\n");
}

void run_convert(tools::Conversion const& what) {
  trainer::Converted done;
  try {
    done = trainer::convert_samples(what.text, what.binary, what.layout, what.options);
  } catch (Error const& error) {
    throw Error(tools::with_options(error.what()));
  }
  done.notices.push_back(done.columns);
  for (std::string& notice : done.notices) notice = tools::with_options(std::move(notice));
  print_notices(done.notices);
  nlohmann::json const json = {
      {"samples", done.samples}, {"bad", done.bad}, {"bytes", done.bytes}, {"seconds", done.seconds}};
  tools::print_result(json.dump() + "\n");
}

// Runs the command. Returns the exit status.
int run(int argc, char** argv) {
  std::optional<tools::CommandLine> const line = tools::parse_command_line(argc, argv);
  if (!line) return 0;
  if (line->command == "train") run_train(*line);
  if (line->command == "search") run_trials(*line, tools::run_search);
  if (line->command == "bench") run_trials(*line, tools::run_bench);
  if (line->command == "eval") run_eval(*line);
  if (line->command == "nearest") run_nearest(*line);
  if (line->command == "recommend") run_recommend(*line);
  if (line->command == "predict") run_predict(*line);
  if (line->command == "export") run_export(*line);
  if (line->command == "report") run_report(*line);
  if (line->command == "convert") run_convert(*line->conversion);
  if (line->command == "doctor") return tools::wait_doctor(*line);
  return 0;
}

}  // namespace

// Exit status: 0 when done or stopped by a signal, 2 for an error of the user or the environment, 1 for any other.
int main(int argc, char** argv) {
  tools::restore_hangup();
  tools::open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // so that writing to a file that is too large fails
  try {
    return run(argc, argv);
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
