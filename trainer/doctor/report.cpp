// SPDX-License-Identifier: Apache-2.0
#include "trainer/doctor/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/check.hpp"

namespace gpups::trainer {
namespace {

constexpr char const* kLevels[] = {"ok", "note", "warning", "problem"};  // by Finding::Level

}  // namespace

std::string line_of(Finding const& finding, std::string const& whose) {
  std::string line = fmt::format("{}: {}{}{}", kLevels[static_cast<std::size_t>(finding.level)], whose,
                                 whose.empty() ? "" : ": ", finding.text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::vector<SharedFinding> merged(std::vector<Findings> const& findings) {
  std::vector<SharedFinding> all;
  for (std::size_t rank = 0; rank < findings.size(); ++rank) {
    for (Finding const& finding : findings[rank]) {
      auto found =
          std::find_if(all.begin(), all.end(), [&](SharedFinding const& one) { return one.finding == finding; });
      if (found == all.end()) found = all.insert(all.end(), {finding, {}});
      auto const number = static_cast<int>(rank);
      if (found->ranks.empty() || found->ranks.back() != number) found->ranks.push_back(number);
    }
  }
  return all;
}

Finding verdict(Finding::Level worst) {
  switch (worst) {
    case Finding::Level::kProblem:
      return problem("the checks have found a problem (a run would fail): correct what the lines above say");
    case Finding::Level::kWarning:
      return warning(
          "the checks have found no problem, but see the warnings above (a run may be slow, or fail in some "
          "cases): correct them if it does");
    case Finding::Level::kNote:
      return note("the checks have found no problem; see what the notes above say about the data");
    case Finding::Level::kOk:
      break;
  }
  return ok("the checks have found no problem");
}

Finding::Level worst_of(Findings const& findings, Finding::Level before) {
  for (Finding const& finding : findings) before = std::max(before, finding.level);
  return before;
}

std::string serialize(Findings const& findings) {
  auto list = nlohmann::json::array();
  for (Finding const& finding : findings) list.push_back({static_cast<int>(finding.level), finding.text});
  // File names may be invalid UTF-8.
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Findings deserialize(std::string const& text) {
  Findings findings;
  try {
    for (auto const& [level, words] : nlohmann::json::parse(text).get<std::vector<std::pair<int, std::string>>>()) {
      findings.push_back({static_cast<Finding::Level>(std::clamp(level, 0, 3)), words});
    }
  } catch (nlohmann::json::exception const& error) {
    throw Error(fmt::format("the findings of another rank cannot be read ({}): start the same program on all ranks",
                            error.what()));
  }
  return findings;
}

}  // namespace gpups::trainer
