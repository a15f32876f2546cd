// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trainer/report/plot_frame.hpp"
#include "trainer/report/plots.hpp"

namespace gpups::trainer::report {

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
