// SPDX-License-Identifier: Apache-2.0
// A result of the doctor's checks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gpups::trainer {

// One line of the doctor's report.
struct Finding {
  // kProblem: a run fails. kWarning: a run is slow, or fails in some cases. kOk: information.
  enum class Level { kOk, kWarning, kProblem };

  Level level = Level::kOk;
  std::string text{};  // kOk: a fact; else as an error message: what is wrong (why that is a problem): what to do
  bool operator==(Finding const&) const = default;
};

using Findings = std::vector<Finding>;

inline Finding ok(std::string text) { return {Finding::Level::kOk, std::move(text)}; }
inline Finding warning(std::string text) { return {Finding::Level::kWarning, std::move(text)}; }
inline Finding problem(std::string text) { return {Finding::Level::kProblem, std::move(text)}; }

}  // namespace gpups::trainer
