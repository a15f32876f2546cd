// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "trainer/report/plot_frame.hpp"
#include "trainer/report/plots.hpp"

namespace gpups::trainer::report {

namespace {

constexpr double kWidth = 480, kRow = 26, kBar = 16;

double sum_of(Bar const& bar) { return std::accumulate(bar.values.begin(), bar.values.end(), 0.0); }

}  // namespace

std::string bar_plot(BarPlot const& plot) {
  std::size_t longest = 0;
  double most = 0;
  for (auto const& bar : plot.bars) {
    longest = std::max(longest, bar.name.size());
    most = std::max(most, sum_of(bar));
  }
  double const left = 14 + 7.4 * static_cast<double>(longest), right = kWidth - 80;
  auto const legend = plot.legend ? plot.parts : std::vector<LegendEntry>{};
  double const top = 10 + kLegendRow * static_cast<double>(legend_rows(legend, 8, kWidth));
  Svg svg(kWidth, top + kRow * static_cast<double>(plot.bars.size()), plot.label);
  write_legend(svg, legend, 8, kWidth);
  double y = top;
  for (auto const& bar : plot.bars) {
    svg.text(left - 6, y + kBar - 4, bar.name, Svg::Anchor::kEnd);
    double x = left;
    for (std::size_t p = 0; p < plot.parts.size(); ++p) {
      double const width = bar.values[p] / most * (right - left);
      if (width <= 0) continue;
      svg.rect(x, y, width, kBar, plot.parts[p].color,
               fmt::format("{}, {}: {}", bar.name, plot.parts[p].name, plot.text(bar.values[p])));
      x += width;
    }
    svg.text(x + 6, y + kBar - 4, plot.text(sum_of(bar)), Svg::Anchor::kStart);
    y += kRow;
  }
  return svg.finish();
}

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

std::string stack_plot(StackPlot const& plot) {
  double most = 0, last = 0;
  for (auto const& column : plot.columns) {
    most = std::max(most, std::accumulate(column.values.begin(), column.values.end(), 0.0));
    last = std::max(last, static_cast<double>(column.last));
  }
  auto const legend = plot.legend ? plot.parts : std::vector<LegendEntry>{};
  PlotFrame frame(plot.label, legend, step_axis(last, 6), axis_for(0, most, 5), plot.unit);
  for (auto const& column : plot.columns) {
    double const left = frame.x(static_cast<double>(column.first)), right = frame.x(static_cast<double>(column.last));
    double below = 0;
    for (std::size_t p = 0; p < plot.parts.size(); ++p) {
      double const value = column.values[p];
      if (value <= 0) continue;
      double const top = frame.y(below + value);
      auto const steps = fmt::format("steps {} to {}", count_text(static_cast<double>(column.first + 1)),
                                     count_text(static_cast<double>(column.last)));
      frame.svg.rect(left, top, right - left, frame.y(below) - top, plot.parts[p].color,
                     fmt::format("{}, {}: {}", plot.parts[p].name, steps, plot.text(value)));
      below += value;
    }
  }
  return frame.svg.finish();
}

}  // namespace gpups::trainer::report
