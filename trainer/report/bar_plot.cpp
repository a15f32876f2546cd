// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
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

}  // namespace gpups::trainer::report
