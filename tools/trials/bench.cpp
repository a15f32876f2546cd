// SPDX-License-Identifier: Apache-2.0
#include "tools/trials/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/base/check.hpp"
#include "tools/standard_streams.hpp"
#include "tools/trials/trial_process.hpp"
#include "trainer/base/atomic_folder.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/stop_signals.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/saved/run_folder_lock.hpp"
#include "trainer/tasks/task_kinds.hpp"
#include "trainer/trials/bench_plan.hpp"

namespace gpups::tools {
namespace {

namespace fs = std::filesystem;

// What a seed measured: means over folds.
struct Measured {
  std::vector<double> metrics;
  double seconds = 0, bytes = 0;  // of training; sent between ranks
};

// Throws Error, with where the data comes from, if a file is missing.
void require_data(trainer::Config const& config, trainer::BenchPlan const& plan) {
  if (!trainer::is_used(config, "data.train")) return;
  for (std::string const& name : {config.data.train, config.data.valid, config.data.test}) {
    fs::path const file = fs::path(config.data.folder) / name;
    GPUPS_REQUIRE(
        name.empty() || fs::exists(file),
        "{} is missing (the benchmark needs it; the data is: {}): give its folder with --set data.folder=FOLDER",
        file.string(), plan.data);
  }
}

// Throws Error if the folder has runs with other settings.
void require_same(fs::path const& folder, trainer::Config config) {
  config.run = {};
  config.cluster = {};
  std::string const now = trainer::resolved(config);
  fs::path const file = folder / "benchmark.toml";
  std::ifstream in(file, std::ios::binary);
  std::string const before(std::istreambuf_iterator<char>(in), {});
  auto const is_run = [](fs::directory_entry const& entry) { return entry.is_directory(); };
  bool const has_runs = std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), is_run);
  GPUPS_REQUIRE(
      !has_runs || before == now,
      "{} has a benchmark with other settings (its finished runs would count): choose another folder with --run",
      folder.string());
  trainer::write_file(file, now);
}

// Runs a training to its end. Returns its summary, or nothing if a signal stopped it.
std::optional<nlohmann::json> wait_run(CommandLine const& line, std::vector<std::string> const& settings,
                                       fs::path const& folder) {
  std::vector<std::string> arguments{"train", line.config, "--resume", "--run", folder.string()};
  for (auto const& all : {settings_for_trials(line.overrides), settings}) {
    for (std::string const& setting : all) arguments.insert(arguments.end(), {"--set", setting});
  }
  wait_free_folder(folder, line.config);  // its process may still end, if the benchmark was killed
  TrialProcess process(arguments, folder.string() + ".log");
  std::optional<TrialEnd> end;
  bool stopping = false;
  while (!(end = process.ended())) {
    if (!stopping && trainer::StopSignals::received()) {
      stopping = true;
      process.stop();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (stopping || end->was_stopped) return std::nullopt;
  auto summary = nlohmann::json::parse(std::ifstream(folder / "summary.json"), nullptr, false);
  GPUPS_REQUIRE(end->error.empty() && summary.is_object(),
                "{} failed: {} (the table needs every run): correct it, and run the same command again",
                folder.filename().string(), end->error.empty() ? "it has no summary" : end->error);
  if (!summary.value("finished", false)) return std::nullopt;
  return summary;
}

double sent_bytes(nlohmann::json const& summary) {
  double bytes = 0;
  for (auto const& [kind, number] : summary.at("sent").items()) {
    if (kind != "messages") bytes += number.get<double>();
  }
  return bytes;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::size_t const middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string table(trainer::BenchPlan const& plan, std::vector<Measured> const& measured) {
  std::size_t width = std::string("median").size();
  for (auto const& published : plan.published) width = std::max(width, published.source.size());
  std::string text = fmt::format("{:<{}}", "", width);
  for (std::string const& metric : plan.metrics) text += fmt::format("  {:>10}", metric);
  text += fmt::format("  {:>10}  {:>10}\n", "training", "sent");
  auto const add = [&](std::string const& name, auto const& metric) {
    text += fmt::format("{:<{}}", name, width);
    for (std::size_t m = 0; m < plan.metrics.size(); ++m) text += fmt::format("  {:>10}", metric(m));
  };
  auto const number = [](double value) { return fmt::format("{:.4g}", value); };
  for (std::size_t s = 0; s < measured.size(); ++s) {
    add(fmt::format("seed {}", plan.seeds[s]), [&](std::size_t m) { return number(measured[s].metrics[m]); });
    text += fmt::format("  {:>10}  {:>10}\n", trainer::short_time(measured[s].seconds),
                        trainer::short_bytes(static_cast<std::uint64_t>(measured[s].bytes)));
  }
  add("median", [&](std::size_t m) {
    std::vector<double> values;
    for (Measured const& seed : measured) values.push_back(seed.metrics[m]);
    return number(median(values));
  });
  text += "\n";
  for (auto const& published : plan.published) {
    add(published.source, [&](std::size_t m) {
      auto const found = published.metrics.find(plan.metrics[m]);
      return found == published.metrics.end() ? "" : number(found->second);
    });
    text += "\n";
  }
  return text;
}

// Returns a line with the settings of the command line that can change a metric: published results are those of the
// configuration. Empty if there are none.
std::string other_settings(std::vector<trainer::SettingOverride> const& overrides) {
  std::vector<std::string> settings;
  for (std::string const& setting : settings_for_trials(overrides)) {
    auto const begins = [&](char const* with) { return setting.starts_with(with); };
    if (!begins("data.folder=") && !begins("run.") && !begins("cluster.")) settings.push_back(setting);
  }
  if (settings.empty()) return "";
  return fmt::format("Settings of the command line: {}\n", fmt::join(settings, ", "));
}

}  // namespace

void run_bench(CommandLine const& line) {
  trainer::StopSignals const signals;
  trainer::BenchPlan const plan = trainer::load_bench_plan(line.config);
  trainer::Config const config = trainer::load_config(line.config, line.overrides);
  for (auto const& fold : plan.folds) {
    std::vector<trainer::SettingOverride> all = line.overrides;
    all.insert(all.end(), fold.begin(), fold.end());
    require_data(trainer::load_config(line.config, all), plan);
  }
  auto const sets_seed = [](auto const& one) { return one.setting.starts_with("train.seed"); };
  GPUPS_REQUIRE(std::none_of(line.overrides.begin(), line.overrides.end(), sets_seed),
                "train.seed has no effect here (bench.seeds has the seeds): change bench.seeds in {}", line.config);
  trainer::RunFolderLock const lock(config.run.folder, fs::path(line.config).stem().string(), line.config);
  require_same(lock.path(), config);
  std::vector<Measured> measured;
  for (std::int64_t const seed : plan.seeds) {
    Measured mean{.metrics = std::vector<double>(plan.metrics.size())};
    auto const folds = static_cast<double>(plan.folds.size());
    for (std::size_t f = 0; f < plan.folds.size(); ++f) {
      std::vector<std::string> settings = plan.folds[f];
      settings.push_back(fmt::format("train.seed={}", seed));
      std::string const name =
          plan.folds.size() == 1 ? fmt::format("seed{}", seed) : fmt::format("seed{}-fold{}", seed, f + 1);
      auto const summary = wait_run(line, settings, fs::absolute(lock.path()) / name);
      if (!summary) {
        return trainer::print_line(
            stderr, fmt::format("stopped by a signal; the same command with --run {} goes on", lock.path().string()));
      }
      for (std::size_t m = 0; m < plan.metrics.size(); ++m) {
        auto const test = summary->value("test", nlohmann::json::object());
        GPUPS_REQUIRE(test.contains(plan.metrics[m]),
                      "the test has no metric '{}' (bench.metrics names it, and {}): correct bench.metrics, or the "
                      "settings of the test",
                      plan.metrics[m], test.empty() ? "there is no test split" : "it has " + test.dump());
        GPUPS_REQUIRE(
            test.at(plan.metrics[m]).is_number(),
            "the test's {} is not defined (for example, all labels are equal): use other test data, or another "
            "metric in bench.metrics",
            plan.metrics[m]);
        mean.metrics[m] += summary->at("test").at(plan.metrics[m]).get<double>() / folds;
      }
      mean.seconds += summary->at("train_seconds").get<double>() / folds;
      mean.bytes += sent_bytes(*summary) / folds;
      trainer::print_line(stderr, fmt::format("{}: {}", name, summary->at("test").dump()));
    }
    measured.push_back(mean);
  }
  print_result(table(plan, measured) + other_settings(line.overrides));
}

}  // namespace gpups::tools
