// SPDX-License-Identifier: Apache-2.0
#include "trainer/trials/search_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "trainer/base/progress_reporter.hpp"
#include "trainer/report/plots.hpp"
#include "trainer/report/report.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer {
namespace {

struct TrialRow {
  std::int64_t trial, budget;
  TrialResult result;
  std::string settings;
};

std::string settings_text(SearchPlan const& plan, std::int64_t trial) {
  std::vector<std::string> const settings = plan.settings_of(trial);
  return settings.empty() ? "as in the file" : fmt::format("{}", fmt::join(settings, "  "));
}

std::vector<TrialRow> rows_of(SearchPlan const& plan, SearchRecord const& record, std::string const& unit) {
  std::vector<TrialRow> rows;
  for (std::int64_t trial = 0; trial < plan.trials; ++trial) {
    auto const results = record.of(trial);
    if (results.empty()) continue;
    std::int64_t budget = results.rbegin()->first;
    TrialResult last = results.rbegin()->second;
    if (last.has_failed() && results.size() > 1) {
      std::string const failed =
          fmt::format("; failed with {}: {}",
                      with_count(static_cast<std::uint64_t>(budget), unit.substr(0, unit.size() - 1)), last.error);
      auto const before = std::prev(results.end(), 2);
      budget = before->first;
      last = before->second;
      last.text += failed;
    }
    rows.push_back({trial, budget, last, settings_text(plan, trial)});
  }
  std::stable_sort(rows.begin(), rows.end(), [](TrialRow const& a, TrialRow const& b) {
    auto const place = [](TrialRow const& row) {
      return std::tuple(row.result.has_failed(), -row.budget, -row.result.quality);
    };
    return place(a) < place(b);
  });
  return rows;
}

std::string outcome(TrialResult const& result) { return result.has_failed() ? "failed: " + result.error : result.text; }

}  // namespace

std::string search_table(SearchPlan const& plan, SearchRecord const& record, std::string const& unit) {
  std::string text = fmt::format("trial  {:>6}  validation, settings\n", unit);
  for (TrialRow const& row : rows_of(plan, record, unit)) {
    text += fmt::format("{:>5}  {:>6}  {}  {}\n", row.trial, row.budget, outcome(row.result), row.settings);
  }
  return text;
}

std::string search_page(SearchPlan const& plan, SearchRecord const& record, std::string const& unit,
                        std::string const& name) {
  report::CurvePlot plot{
      .label = "Quality of the validation over " + unit, .curves = {}, .unit = {1, "quality"}, .from_zero = false};
  std::string lines;
  for (TrialRow const& row : rows_of(plan, record, unit)) {
    lines += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", row.trial, row.budget,
                         report::escape(outcome(row.result)), report::escape(row.settings));
    if (row.result.has_failed() || plot.curves.size() == report::kColors) continue;
    report::Curve curve{
        .name = fmt::format("trial {}", row.trial), .color = report::color(plot.curves.size()), .points = {}};
    for (auto const& [budget, result] : record.of(row.trial)) {
      if (!result.has_failed()) curve.points.emplace_back(budget, result.quality);
    }
    plot.curves.push_back(curve);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"generator\" content=\"gpu_train search\">\n<title>{0} - "
      "gpups</title>\n<style>{1}</style>\n</head>\n"
      "<body>\n<header>\n<h1>Search {0}</h1>\n</header>\n<main>\n<section>\n<h2>The best trials</h2>\n"
      "<p class=\"how\">A trial that ends early was worse than others with the same budget.</p>\n{2}</section>\n"
      "<section>\n<h2>All "
      "trials</h2>\n<table>\n<tr><th>trial</th><th>{3}</th><th>validation</th><th>settings</th></tr>\n"
      "{4}</table>\n</section>\n</main>\n</body>\n</html>\n",
      report::escape(name), report::kPageStyle, plot.curves.empty() ? "" : report::curve_plot(plot), unit, lines);
}

}  // namespace gpups::trainer
