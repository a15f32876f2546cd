// SPDX-License-Identifier: Apache-2.0
// The kinds of plots in a report, as SVG texts. Plots have at least one number that is not 0; a section without such
// numbers has a sentence instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/report/axis.hpp"

namespace gpups::trainer::report {

// A name in a legend and its color.
struct LegendEntry {
  std::string name, color;
};

// Values at steps, as a curve.
struct Curve {
  std::string name;
  std::string color;
  std::vector<std::pair<std::int64_t, double>> points;  // step and value, ascending
};
// The vertical axis contains 0 if `from_zero` is set. text: converts a value for a hover text.
struct CurvePlot {
  std::string label;
  std::vector<Curve> curves;
  NumberUnit unit{};
  bool from_zero = true;
  std::string (*text)(double) = number_text;
};
std::string curve_plot(CurvePlot const& plot);

// Values of parts, one on another.
struct StackColumn {
  std::int64_t first = 0, last = 0;  // its steps are first + 1 .. last
  std::vector<double> values;        // by part
};
struct StackPlot {
  std::string label;
  std::vector<LegendEntry> parts;  // the lowest first
  std::vector<StackColumn> columns;
  NumberUnit unit{};
  std::string (*text)(double) = number_text;
  bool legend = true;
};
std::string stack_plot(StackPlot const& plot);

// Horizontal bars with parts.
struct Bar {
  std::string name;
  std::vector<double> values;  // by part
};
struct BarPlot {
  std::string label;
  std::vector<LegendEntry> parts;
  std::vector<Bar> bars;
  std::string (*text)(double) = number_text;
  bool legend = true;
};
std::string bar_plot(BarPlot const& plot);

// What ranks sent to other ranks, as squares whose strength is the value.
struct HeatMap {
  std::string title;
  std::vector<std::vector<double>> bytes;  // (ranks, ranks): from, to
  std::vector<std::size_t> borders{};      // the first rank of each host but the first one: a line before it
};
std::string heat_map(HeatMap const& map);

}  // namespace gpups::trainer::report
