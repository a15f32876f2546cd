// SPDX-License-Identifier: Apache-2.0
// Sections about the model and the time.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trainer/report/page_section.hpp"
#include "trainer/report/plots.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report {
namespace {

// Returns the metrics of the valid split by name, without counts.
std::map<std::string, Curve> metric_curves(RunRecord const& run) {
  std::map<std::string, Curve> curves;
  for (auto const& line : run.validations) {
    for (auto const& [name, value] : line.at("valid").items()) {
      if (!value.is_number_float()) continue;
      auto& curve = curves[name];
      curve.name = name;
      curve.points.emplace_back(line.at("step").get<std::int64_t>(), value.get<double>());
    }
  }
  return curves;
}

bool is_share(Curve const& curve) {
  return std::all_of(curve.points.begin(), curve.points.end(),
                     [](auto const& point) { return point.second >= 0 && point.second <= 1; });
}

// Returns hits@3 before hits@10.
std::vector<std::pair<std::string const, Curve>*> by_length(std::map<std::string, Curve>& curves) {
  std::vector<std::pair<std::string const, Curve>*> sorted;
  for (auto& curve : curves) sorted.push_back(&curve);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](auto const* a, auto const* b) { return a->first.size() < b->first.size(); });
  return sorted;
}

// Returns plots of metrics: those between 0 and 1 together, and one for each other.
std::string metric_plots(RunRecord const& run) {
  auto curves = metric_curves(run);
  if (curves.empty()) return no_plot("Validation", "There are no metrics of a valid split: none was computed so far.");
  CurvePlot shares{.label = "Metrics of the valid split over steps", .curves = {}, .unit = {1, "metric"}};
  std::string others;
  for (auto* const its : by_length(curves)) {
    auto& [name, curve] = *its;
    if (is_share(curve)) {
      curve.color = color(shares.curves.size());
      shares.curves.push_back(std::move(curve));
    } else {
      curve.color = color(0);
      others += figure("Validation: " + name, curve_plot({.label = name + " of the valid split over steps",
                                                          .curves = {curve},
                                                          .unit = {1, name},
                                                          .from_zero = false}));
    }
  }
  return (shares.curves.empty() ? "" : figure("Validation", curve_plot(shares))) + others;
}

std::string seconds_text(double seconds) { return fmt::format("{:.3g} s", seconds); }

}  // namespace

PageSection loss_section(RunView const& view) {
  Curve loss{.name = "loss", .color = color(0), .points = {}};
  for (auto const& interval : view.intervals) loss.points.emplace_back(interval.last, interval.loss);
  std::string const plot =
      curve_plot({.label = "Training loss over steps", .curves = {loss}, .unit = {1, "loss"}, .from_zero = false});
  return {"loss", "Loss and metrics",
          "The loss is the mean over the samples of all ranks since the point before, and metrics are those of the "
          "samples that are kept for validation.",
          figure("Training loss", plot) + metric_plots(view.run)};
}

PageSection speed_section(RunView const& view) {
  Curve speed{.name = "speed", .color = color(0), .points = {}};
  double most = 0;
  for (auto const& interval : view.intervals) {
    speed.points.emplace_back(interval.last, interval.samples_per_s);
    most = std::max(most, interval.samples_per_s);
  }
  std::string body = most > 0 ? figure("Samples per second", curve_plot({.label = "Samples per second over steps",
                                                                         .curves = {speed},
                                                                         .unit = count_unit(most, "samples/s")}))
                              : no_plot("Samples per second", "No training time was measured.");
  BarPlot stages{.label = "Seconds of each stage", .parts = {{"seconds", color(0)}}, .bars = {}, .text = seconds_text};
  stages.legend = false;
  auto const seconds_of = view.run.last("stage_seconds");
  for (auto const& [name, seconds] : seconds_of.items()) {
    if (seconds.is_number() && seconds > 0) stages.bars.push_back({name, {seconds.get<double>()}});
  }
  body += stages.bars.empty() ? no_plot("Stages of a step", "No seconds of stages were reported.")
                              : figure("Stages of a step, on rank 0", bar_plot(stages));
  return {"speed", "Speed",
          "Samples are those of all ranks, without validation and saving; the stages of rank 0 follow one another, but "
          "prepare runs in parallel with them.",
          body};
}

}  // namespace gpups::trainer::report
