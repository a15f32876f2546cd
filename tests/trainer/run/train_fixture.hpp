// SPDX-License-Identifier: Apache-2.0
// Runs of the trainer on small data.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/trainer/run/synthetic_graph.hpp"
#include "trainer/run/train.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer {

class RunTest : public testing::Test {
 protected:
  using Settings = std::vector<std::string>;

  // base: settings for all runs.
  explicit RunTest(Settings base) : base_(std::move(base)) {
    base_.insert(base_.end(), {"train.batch_size=64", "train.microbatches=8", "train.epochs=3", "run.device=host",
                               "run.threads=1", "placement.bytes_min=0"});
  }

  Config config(Settings settings) const {
    for (std::string const& base : base_) {
      // Settings of a test replace these; train.steps replaces train.epochs.
      if (base == "train.epochs=3" && has(settings, "train.steps=")) continue;
      settings.insert(settings.begin(), base);
    }
    return parse_config("", "test", folder_.path(), {settings.begin(), settings.end()});
  }

  // Runs the trainer in the folder `name`, or resumes the run there. Returns the summary.
  nlohmann::json run(std::string const& name, Settings const& settings, bool resume = false) const {
    Config const c = config(settings);
    return run_on(c.run.ranks == 1 ? std::vector<Group>{Group::alone()} : Group::threads(static_cast<int>(c.run.ranks)),
                  name, settings, resume);
  }

  nlohmann::json run_on(std::vector<Group> const& group, std::string const& name, Settings const& settings,
                        bool resume = false) const {
    Config const c = config(settings);
    auto const data = read_data(c);
    run_ranks(group, [&](Group one) { train(c, *data, one, {.folder = folder_.path() / name, .resume = resume}); });
    return nlohmann::json::parse(std::ifstream(folder_.path() / name / "summary.json"));
  }

  // Returns the lines of a run's metrics.jsonl that have a key.
  std::vector<nlohmann::json> lines(std::string const& name, std::string const& key) const {
    std::ifstream in(folder_.path() / name / "metrics.jsonl");
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(in, line);) {
      auto json = nlohmann::json::parse(line);
      if (json.contains(key)) found.push_back(std::move(json));
    }
    return found;
  }

  // Returns the fields of a summary that must not depend on ranks, threads and network.
  static nlohmann::json result(nlohmann::json const& summary) {
    nlohmann::json wanted;
    for (char const* key :
         {"table_hash", "dense_hash", "loss", "valid", "best", "test", "progressive", "samples", "steps", "finished"}) {
      if (summary.contains(key)) wanted[key] = summary.at(key);
    }
    return wanted;
  }

  test::TemporaryFolder folder_;

 private:
  static bool has(Settings const& settings, std::string const& beginning) {
    for (std::string const& s : settings) {
      if (s.starts_with(beginning)) return true;
    }
    return false;
  }

  Settings base_;
};

// Runs on a small graph.
class TrainTest : public RunTest {
 protected:
  TrainTest() : RunTest({"model.dim=16", "model.negatives=4"}) { test::write_synthetic_graph(folder_); }
};

}  // namespace gpups::trainer
