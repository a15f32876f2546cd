// SPDX-License-Identifier: Apache-2.0
// The axes and the legend of a plot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/report/axis.hpp"
#include "trainer/report/plots.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report {

// A picture with a legend, a vertical axis and a horizontal axis of steps. The owner draws into `svg`.
class PlotFrame {
 public:
  // A frame without a legend has no entries. A unit's name is written at its axis.
  PlotFrame(std::string_view label, std::vector<LegendEntry> const& legend, Axis steps, Axis values,
            NumberUnit const& unit);

  Svg svg;

  double x(double step) const { return steps_.position(step, kLeft, kRight); }
  double y(double value) const { return values_.position(value, bottom(), top_); }
  double bottom() const { return top_ + kPlotHeight; }

  static constexpr double kWidth = 480, kLeft = 56, kRight = kWidth - 14, kPlotHeight = 190;

 private:
  static double top_below(std::vector<LegendEntry> const& legend);

  Axis steps_, values_;
  double top_;
};

// Writes a legend from (left, 14) on. Returns the number of its rows, each kLegendRow high.
inline constexpr double kLegendRow = 18;
std::size_t legend_rows(std::vector<LegendEntry> const& entries, double left, double right);
void write_legend(Svg& svg, std::vector<LegendEntry> const& entries, double left, double right);

}  // namespace gpups::trainer::report
