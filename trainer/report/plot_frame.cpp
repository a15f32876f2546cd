// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/plot_frame.hpp"

#include <fmt/format.h>

#include <functional>

namespace gpups::trainer::report {
namespace {

constexpr double kSwatch = 10, kBelow = 40;

// Calls `place` with each entry and its position. Returns the number of rows. Widths of texts are estimates.
std::size_t lay_out(std::vector<LegendEntry> const& entries, double left, double right,
                    std::function<void(LegendEntry const&, double x, double y)> const& place) {
  double x = left;
  std::size_t row = 0;
  for (auto const& entry : entries) {
    double const width = kSwatch + 22 + 7.4 * static_cast<double>(entry.name.size());
    if (x > left && x + width > right) {
      x = left;
      ++row;
    }
    place(entry, x, 14 + kLegendRow * static_cast<double>(row));
    x += width;
  }
  return entries.empty() ? 0 : row + 1;
}

}  // namespace

std::size_t legend_rows(std::vector<LegendEntry> const& entries, double left, double right) {
  return lay_out(entries, left, right, [](auto const&, double, double) {});
}

void write_legend(Svg& svg, std::vector<LegendEntry> const& entries, double left, double right) {
  lay_out(entries, left, right, [&](LegendEntry const& entry, double x, double y) {
    svg.rect(x, y - kSwatch + 1, kSwatch, kSwatch, entry.color, entry.name);
    svg.text(x + kSwatch + 5, y, entry.name, Svg::Anchor::kStart);
  });
}

double PlotFrame::top_below(std::vector<LegendEntry> const& legend) {
  return 32 + kLegendRow * static_cast<double>(legend_rows(legend, kLeft, kRight));
}

PlotFrame::PlotFrame(std::string_view label, std::vector<LegendEntry> const& legend, Axis steps, Axis values,
                     NumberUnit const& unit)
    : svg(kWidth, top_below(legend) + kPlotHeight + kBelow, label),
      steps_(steps),
      values_(values),
      top_(top_below(legend)) {
  write_legend(svg, legend, kLeft, kRight);
  svg.text(kLeft - 6, top_ - 12, unit.name, Svg::Anchor::kStart, "unit");
  for (double const tick : values_.ticks()) {
    svg.line(kLeft, y(tick), kRight, y(tick), "grid");
    svg.text(kLeft - 6, y(tick) + 4, values_.text(tick, unit), Svg::Anchor::kEnd);
  }
  NumberUnit const step_unit = count_unit(steps_.high, "steps");
  for (double const tick : steps_.ticks()) {
    svg.line(x(tick), bottom(), x(tick), bottom() + 4, "axis");
    bool const last = x(tick) > kRight - 12;
    svg.text(x(tick), bottom() + 17, steps_.text(tick, step_unit), last ? Svg::Anchor::kEnd : Svg::Anchor::kMiddle);
  }
  svg.line(kLeft, bottom(), kRight, bottom(), "axis");
  svg.text((kLeft + kRight) / 2, bottom() + 34, step_unit.name, Svg::Anchor::kMiddle, "unit");
}

}  // namespace gpups::trainer::report
