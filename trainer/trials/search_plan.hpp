// SPDX-License-Identifier: Apache-2.0
// What a search of hyper-parameters tries: the section [search] of a configuration. See docs/search.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/config/config.hpp"

namespace gpups::trainer {

// A setting whose value is drawn: one of `choices`, or a number from `low` to `high` if there are none.
struct SearchedSetting {
  std::string name;                    // "section.key"
  std::vector<std::string> choices{};  // as TOML
  double low = 0, high = 0;
  bool logarithmic = false;  // equal factors instead of equal differences have the same probability
  bool whole = false;        // integers
};

// The settings of [search].
struct SearchPlan {
  std::int64_t trials = 27, reduction = 3, concurrent = 1, seed = 1;
  std::vector<SearchedSetting> settings{};
  std::string text{};  // the section as TOML, without `concurrent`: what results depend on

  // Returns the settings of a trial, "section.key=value". Trial 0 has none: it tries the configuration as it is.
  // Depends on seed and number only.
  std::vector<std::string> settings_of(std::int64_t trial) const;
};

// Reads [search] of a configuration file. Throws Error, with file and line, for a key that is unknown or missing, and
// for a setting that cannot be searched.
SearchPlan load_search_plan(std::filesystem::path const& file, TaskKinds kinds);

// One stage of successive halving (Jamieson and Talwalkar 2016).
struct SearchStage {
  std::int64_t trials, budget;  // budget: epochs or steps that each of its trials has trained at its end
  bool operator==(SearchStage const&) const = default;
};
// Returns the stages of `trials` trials: each has 1 / reduction of the trials of the stage before, with `reduction`
// times the budget; the last one has `budget`, and at least one trial.
std::vector<SearchStage> stages_of(std::int64_t trials, std::int64_t reduction, std::int64_t budget);

}  // namespace gpups::trainer
