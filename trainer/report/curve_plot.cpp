// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "trainer/report/plot_frame.hpp"
#include "trainer/report/plots.hpp"

namespace gpups::trainer::report {
namespace {

constexpr std::size_t kMarkedPoints = 25;  // with more points, a curve has no marks

}  // namespace

std::string curve_plot(CurvePlot const& plot) {
  double low = plot.from_zero ? 0 : std::numeric_limits<double>::max();
  double high = plot.from_zero ? 0 : std::numeric_limits<double>::lowest(), last = 0;
  std::vector<LegendEntry> legend;
  for (auto const& curve : plot.curves) {
    legend.push_back({curve.name, curve.color});
    for (auto const& [step, value] : curve.points) {
      low = std::min(low, value);
      high = std::max(high, value);
      last = std::max(last, static_cast<double>(step));
    }
  }
  if (plot.curves.size() < 2) legend.clear();
  PlotFrame frame(plot.label, legend, step_axis(last, 6), axis_for(low, high, 5), plot.unit);
  for (auto const& curve : plot.curves) {
    std::string points;
    for (auto const& [step, value] : curve.points) {
      points += fmt::format("{:.1f},{:.1f} ", frame.x(static_cast<double>(step)), frame.y(value));
    }
    frame.svg.polyline(points, curve.color);
    for (auto const& [step, value] : curve.points) {
      frame.svg.point(
          frame.x(static_cast<double>(step)), frame.y(value), curve.color,
          fmt::format("{} at step {}: {}", curve.name, count_text(static_cast<double>(step)), plot.text(value)),
          curve.points.size() <= kMarkedPoints);
    }
  }
  return frame.svg.finish();
}

}  // namespace gpups::trainer::report
