// SPDX-License-Identifier: Apache-2.0
#include "tools/trials/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <thread>

#include "gpups/gpups.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/arena.hpp"
#include "tools/standard_streams.hpp"
#include "tools/trials/trial_process.hpp"
#include "trainer/base/atomic_folder.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/stop_signals.hpp"
#include "trainer/saved/run_folder.hpp"
#include "trainer/saved/run_folder_lock.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/task_kinds.hpp"
#include "trainer/trials/search_page.hpp"
#include "trainer/trials/search_plan.hpp"
#include "trainer/trials/search_record.hpp"

namespace gpups::tools {
namespace {

namespace fs = std::filesystem;
using trainer::SearchPlan, trainer::SearchRecord, trainer::TrialResult;
using Settings = std::vector<std::string>;

constexpr auto kPoll = std::chrono::milliseconds(20);

// How long a trial may train.
struct Budget {
  std::string setting;  // train.epochs or train.steps
  std::string unit;     // "epochs" or "steps"
  std::int64_t full = 0;

  // Returns "1 epoch" or "3 steps", for example.
  std::string text(std::int64_t budget) const {
    return trainer::with_count(static_cast<std::uint64_t>(budget), unit.substr(0, unit.size() - 1));
  }
};
Budget budget_of(trainer::Config const& config) {
  if (config.train.steps > 0) return {"train.steps", "steps", config.train.steps};
  return {"train.epochs", "epochs", config.train.epochs};
}

// Returns the settings on which results depend: not those of [run] and [cluster].
std::string of_results(trainer::Config config) {
  config.run = {};
  config.cluster = {};
  return trainer::resolved(config);
}

class Search {
 public:
  Search(CommandLine const& line, trainer::Config const& config, SearchPlan plan, std::uint64_t digest, fs::path folder)
      : file_(line.config),
        given_(settings_for_trials(line.overrides)),
        plan_(std::move(plan)),
        budget_(budget_of(config)),
        folder_(std::move(folder)),
        what_{{"search", plan_.text}, {"configuration", of_results(config)}, {"data", digest}} {
    GPUPS_REQUIRE(config.train.patience == 0,
                  "train.patience ends trials early (trials are compared after equal times): remove it");
    auto const ranks = static_cast<std::size_t>(config.run.ranks);
    if (plan_.concurrent > 1 && config.run.threads == 0) {
      auto const cores = static_cast<std::size_t>(kernels::Arena(0).threads());
      threads_ = std::max<std::size_t>(cores / (static_cast<std::size_t>(plan_.concurrent) * ranks), 1);
    }
    // Each of the trials at the same time has a GPU, as far as there are as many.
    bool const chooses = config.run.device == "auto" || config.run.device == "cuda";
    gpus_ = chooses && ranks == 1 && plan_.concurrent > 1 ? cuda_device_count() : 0;
  }

  // Throws Error if the settings of a trial are invalid, before any trial begins.
  void check(trainer::Data const& data) const {
    for (std::int64_t trial = 0; trial < plan_.trials; ++trial) config_of(stage_settings(trial, budget_.full, data));
  }

  // Returns false if a signal stopped the search.
  bool wait_run(trainer::Data const& data) {
    fs::create_directories(folder_ / "trials");
    record_.emplace(folder_, what_);
    std::vector<std::int64_t> trials(static_cast<std::size_t>(plan_.trials));
    std::iota(trials.begin(), trials.end(), std::int64_t{0});
    std::vector<trainer::SearchStage> const stages = trainer::stages_of(plan_.trials, plan_.reduction, budget_.full);
    for (std::size_t r = 0; r < stages.size(); ++r) {
      trainer::print_line(stderr, fmt::format("{} with {} each", trainer::with_count(trials.size(), "trial"),
                                              budget_.text(stages[r].budget)));
      if (!wait_stage(trials, stages[r].budget, data)) return false;
      auto const next = static_cast<std::size_t>(r + 1 < stages.size() ? stages[r + 1].trials : 1);
      std::vector<std::int64_t> const all =
          trainer::best_trials(*record_, trials, stages[r].budget, trials.size());  // with results, the best first
      if (all.empty()) {
        GPUPS_REQUIRE(r > 0, "every trial failed, the first with: {} (there is no result): {}",
                      record_->find(trials.front(), stages[r].budget)->error,
                      what_to_do(fmt::format("correct {}", file_)));
        auto const may_succeed = [&](std::int64_t trial) {
          TrialResult const* const failed = record_->find(trial, stages[r].budget);
          return failed == nullptr || failed->of_environment;
        };
        auto const found = std::find_if(ranked_.begin(), ranked_.end(), may_succeed);
        best_ = found == ranked_.end() ? ranked_.front() : *found;
        return true;
      }
      ranked_ = all, reached_ = stages[r].budget;
      std::vector<std::int64_t> const best(all.begin(),
                                           all.begin() + static_cast<std::ptrdiff_t>(std::min(next, all.size())));
      for (std::int64_t const trial : trials) {
        bool const again = record_->find(trial, stages[r].budget)->of_environment;  // it continues where it was
        if (!again && std::find(best.begin(), best.end(), trial) == best.end()) remove_checkpoints(trial);
      }
      trials = best;
    }
    best_ = trials.front();
    return true;
  }

  // Throws Error if the last stage has no result because of the environment, and reports other trials that it ended.
  void require_last_stage() const {
    auto const failures = record_->failures_of_environment();
    if (failures.empty()) return;
    std::string const what =
        fmt::format("{} ended by the machine, not by {} settings, the first with: {}",
                    failures.size() == 1 ? "1 trial was" : fmt::format("{} trials were", failures.size()),
                    failures.size() == 1 ? "its" : "their", failures.front());
    GPUPS_REQUIRE(reached_ == budget_.full, "{} (no trial has {}): {}", what, budget_.text(budget_.full),
                  what_to_do(""));
    trainer::print_line(stderr, fmt::format("{}; {}", what, what_to_do("")));
  }

  // Writes the page and the configuration of the best trial. Returns the table.
  std::string finish() const {
    trainer::write_file(folder_ / "best.toml", trainer::resolved(config_of(settings_of(best_))));
    trainer::write_file(folder_ / "search.html",
                        trainer::search_page(plan_, *record_, budget_.unit, folder_.filename().string()));
    std::string const reached = reached_ == budget_.full
                                    ? ""
                                    : fmt::format(" of those with {}, because no trial with {} has a result",
                                                  budget_.text(reached_), budget_.full);
    return trainer::search_table(plan_, *record_, budget_.unit) +
           fmt::format("best: trial {}{}, run {}; its configuration is {}, the plot {}\n", best_, reached,
                       folder_of(best_).string(), (folder_ / "best.toml").string(), (folder_ / "search.html").string());
  }

 private:
  struct RunningTrial {
    std::int64_t trial;
    TrialProcess process;
  };

  fs::path folder_of(std::int64_t trial) const { return folder_ / "trials" / fmt::format("{:03}", trial); }

  // Returns `otherwise`, or how the trials that the environment ended run again.
  std::string what_to_do(std::string const& otherwise) const {
    if (record_->failures_of_environment().empty()) return otherwise;
    return fmt::format("free memory or space on the disk, and try them again with --resume --run {}", folder_.string());
  }

  void remove_checkpoints(std::int64_t trial) const {
    std::error_code ignored;  // files that stay do no harm
    for (char const* name : {trainer::kLastCheckpoint, trainer::kBestCheckpoint}) {
      fs::remove_all(folder_of(trial) / name, ignored);
    }
  }

  Settings settings_of(std::int64_t trial) const {
    Settings all = given_;
    for (std::string const& setting : plan_.settings_of(trial)) all.push_back(setting);
    return all;
  }
  trainer::Config config_of(Settings const& settings) const {
    std::vector<trainer::SettingOverride> all;
    for (std::string const& setting : settings) all.emplace_back(setting, "a trial with " + setting);
    return trainer::load_config(file_, all);
  }
  // Returns the settings of a trial's stage.
  Settings stage_settings(std::int64_t trial, std::int64_t budget, trainer::Data const& data) const {
    Settings all = settings_of(trial);
    trainer::Config const config = trainer::with_batch_size(config_of(all), data);
    all.push_back(fmt::format("{}={}", budget_.setting, budget));
    all.emplace_back("train.validate_every=0");  // at the end of each stage only
    if (threads_ > 0) all.push_back(fmt::format("run.threads={}", threads_));
    if (config.optimizer.schedule != "constant" && config.optimizer.total_steps == 0) {
      // The schedule is that of the full budget, so a stage can be continued.
      auto const samples = static_cast<std::int64_t>(data.samples());
      std::int64_t const steps = (samples + config.train.batch_size - 1) / config.train.batch_size;
      all.push_back(
          fmt::format("optimizer.total_steps={}", budget_.unit == "steps" ? budget_.full : budget_.full * steps));
    }
    return all;
  }

  std::unique_ptr<RunningTrial> start(std::int64_t trial, std::int64_t budget, std::size_t slot,
                                      trainer::Data const& data) const {
    std::vector<std::string> arguments{"train", file_, "--resume", "--run", folder_of(trial).string()};
    Settings settings = stage_settings(trial, budget, data);
    if (gpus_ > 0) settings.push_back(fmt::format("run.device=cuda:{}", slot % static_cast<std::size_t>(gpus_)));
    for (std::string const& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    wait_free_folder(folder_of(trial), file_);  // its process may still end, if this search was killed
    fs::path const log = folder_ / "trials" / fmt::format("{:03}.log", trial);
    return std::unique_ptr<RunningTrial>(new RunningTrial{trial, {arguments, log}});
  }

  // Trains all trials up to the budget.
  bool wait_stage(std::vector<std::int64_t> const& trials, std::int64_t budget, trainer::Data const& data) {
    std::deque<std::int64_t> waiting;
    for (std::int64_t const trial : trials) {
      if (record_->find(trial, budget) == nullptr) waiting.push_back(trial);
    }
    std::vector<std::unique_ptr<RunningTrial>> slots(static_cast<std::size_t>(plan_.concurrent));
    auto const runs = [](auto const& slot) { return slot != nullptr; };
    bool stopping = false;
    while (!waiting.empty() || std::any_of(slots.begin(), slots.end(), runs)) {
      if (!stopping && trainer::StopSignals::received()) {
        stopping = true;
        waiting.clear();
        for (auto const& slot : slots) {
          if (slot) slot->process.stop();
        }
      }
      for (std::size_t s = 0; s < slots.size(); ++s) {
        auto& slot = slots[s];
        if (slot) {
          auto const end = slot->process.ended();
          if (!end) continue;
          if (!stopping && !add_result(slot->trial, budget, *end)) waiting.push_back(slot->trial);
          slot.reset();
        }
        if (waiting.empty()) continue;
        slot = start(waiting.front(), budget, s, data);
        waiting.pop_front();
      }
      std::this_thread::sleep_for(kPoll);
    }
    return !stopping;
  }

  // Records the result of a stage. Returns false if the trial was stopped before its end.
  bool add_result(std::int64_t trial, std::int64_t budget, TrialEnd const& end) {
    if (end.was_stopped) return false;
    TrialResult result{.error = end.error, .of_environment = end.of_environment};
    if (end.error.empty()) {
      auto const summary = nlohmann::json::parse(std::ifstream(folder_of(trial) / "summary.json"), nullptr, false);
      if (summary.is_object() && !summary.value("finished", true)) return false;
      auto const validation = summary.is_object() ? summary.value("validation", nlohmann::json()) : nlohmann::json();
      if (validation.is_object() && validation.at("quality").is_number()) {
        result.quality = validation.at("quality").get<double>();
        result.text = validation.at("text").get<std::string>();
      } else {
        result.error = "its validation is not a number";
      }
    }
    record_->add(trial, budget, result);
    trainer::print_line(stderr, fmt::format("trial {}, {}: {}", trial, budget_.text(budget),
                                            result.has_failed() ? "failed: " + result.error : result.text));
    return true;
  }

  std::string file_;
  Settings given_;  // on the command line
  SearchPlan plan_;
  Budget budget_;
  fs::path folder_;
  nlohmann::json what_;                 // the first line of the record
  std::optional<SearchRecord> record_;  // after wait_run() has begun
  std::size_t threads_ = 0;             // of a trial; 0: its default
  int gpus_ = 0;
  std::vector<std::int64_t> ranked_;  // the trials with results of the last stage that has some, the best first
  std::int64_t reached_ = 0;          // the budget of that stage
  std::int64_t best_ = 0;
};

}  // namespace

void run_search(CommandLine const& line) {
  trainer::StopSignals const signals;
  trainer::Config config = trainer::load_config(line.config, line.overrides);
  SearchPlan plan = trainer::load_search_plan(line.config, trainer::task_kinds());
  GPUPS_REQUIRE(
      !line.resume || !config.run.folder.empty(),
      "--resume has no folder to continue in (a search without --run makes a new folder): give it with --run");
  trainer::RunFolderLock const lock(config.run.folder, fs::path(line.config).stem().string(), line.config);
  bool const exists = fs::exists(lock.path() / "search.jsonl");
  GPUPS_REQUIRE(exists || !fs::exists(lock.path() / "config.toml"),
                "{} is the folder of a run of train, and has no search (the trials would be mixed with it): choose "
                "another folder",
                lock.path().string());
  if (line.resume && !exists) {
    trainer::print_line(stderr,
                        fmt::format("--resume: {} has no search, so a new one begins there", lock.path().string()));
  }
  GPUPS_REQUIRE(
      line.resume || !exists,
      "{} contains a search (a new one would mix with it): continue it with --resume, or choose another folder",
      lock.path().string());
  auto const data = trainer::read_data(config);
  GPUPS_REQUIRE(data->has("valid"),
                "the data has no valid split (a search compares trials by it): set data.valid or data.valid_share");
  Search search(line, config, std::move(plan), data->digest(), fs::absolute(lock.path()));
  search.check(*data);
  for (std::string const& notice : data->notices()) trainer::print_line(stderr, notice);
  if (!search.wait_run(*data)) {
    trainer::print_line(stderr,
                        fmt::format("stopped by a signal; continue with --resume --run {}", lock.path().string()));
    return;
  }
  print_result(search.finish());
  search.require_last_stage();
}

}  // namespace gpups::tools
