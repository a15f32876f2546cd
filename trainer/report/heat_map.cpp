// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "trainer/report/plots.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report {
namespace {

constexpr double kLeft = 62, kTop = 44, kSide = 190;
constexpr std::size_t kLabelledRanks = 16, kWrittenRanks = 4;  // with more ranks, cells have no numbers

}  // namespace

std::string heat_map(HeatMap const& map) {
  std::size_t const ranks = map.bytes.size();
  double const cell = kSide / static_cast<double>(ranks), gap = ranks <= kLabelledRanks ? 1 : 0;
  double most = 0, all = 0;
  for (auto const& row : map.bytes) {
    for (double const bytes : row) {
      most = std::max(most, bytes);
      all += bytes;
    }
  }
  Svg svg(kLeft + kSide + 4, kTop + kSide + 4, map.title + " between ranks");
  svg.text(kLeft, 14, fmt::format("{}: {}", map.title, bytes_text(all)), Svg::Anchor::kStart, "title");
  svg.text(0, 36, "from \\ to", Svg::Anchor::kStart, "unit");
  NumberUnit const unit = byte_unit(most);
  for (std::size_t from = 0; from < ranks; ++from) {
    double const y = kTop + cell * static_cast<double>(from), middle = y + cell / 2 + 4;
    if (ranks <= kLabelledRanks) {
      svg.text(kLeft - 6, middle, fmt::to_string(from), Svg::Anchor::kEnd);
      svg.text(kLeft + cell * (static_cast<double>(from) + 0.5), 36, fmt::to_string(from), Svg::Anchor::kMiddle);
    }
    for (std::size_t to = 0; to < ranks; ++to) {
      double const x = kLeft + cell * static_cast<double>(to), bytes = map.bytes[from][to];
      if (from == to) continue;
      svg.rect(x, y, cell - gap, cell - gap, "var(--heat)",
               fmt::format("{}, rank {} to rank {}: {}", map.title, from, to, bytes_text(bytes)),
               0.06 + 0.94 * bytes / most);
      if (ranks > kWrittenRanks) continue;
      svg.text(x + cell / 2, middle, fmt::format("{:.3g}", bytes / unit.size), Svg::Anchor::kMiddle,
               bytes > most / 2 ? "on-strong" : "");
    }
  }
  for (std::size_t const rank : map.borders) {
    double const offset = cell * static_cast<double>(rank) - gap / 2;
    svg.line(kLeft - 20, kTop + offset, kLeft + kSide, kTop + offset, "border");
    svg.line(kLeft + offset, kTop - 20, kLeft + offset, kTop + kSide, "border");
  }
  if (ranks <= kWrittenRanks) svg.text(kLeft + kSide, 14, unit.name, Svg::Anchor::kEnd, "unit");
  return svg.finish();
}

}  // namespace gpups::trainer::report
