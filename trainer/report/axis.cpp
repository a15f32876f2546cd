// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpups::trainer::report {
namespace {

// Returns the least of 1, 2, 5, 10, ... that is at least `least`.
double round_up(double least) {
  double const power = std::pow(10, std::floor(std::log10(least)));
  for (double const factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

NumberUnit byte_unit(double most) {
  char const* const names[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t i = 0;
  double size = 1;
  for (; most >= 1000 * size && i + 1 < std::size(names); ++i) size *= 1000;
  return {size, names[i]};
}

NumberUnit count_unit(double most, std::string_view things) {
  if (most >= 1e7) return {1e6, fmt::format("million {}", things)};
  if (most >= 1e5) return {1e3, fmt::format("thousand {}", things)};
  return {1, std::string(things)};
}

std::vector<double> Axis::ticks() const {
  std::vector<double> all;
  auto const count = static_cast<int>(std::floor((high - low) / tick + 1e-9));
  for (int i = 0; i <= count; ++i) all.push_back(low + i * tick);
  return all;
}

std::string Axis::text(double tick_at, NumberUnit const& unit) const {
  double const number = tick_at / unit.size, step = tick / unit.size;
  int const digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  if (std::abs(number) < step * 1e-6) return "0";
  return digits == 0 ? count_text(number) : fmt::format("{:.{}f}", number, digits);
}

Axis axis_for(double low, double high, std::size_t ticks_max) {
  if (high <= low) {
    double const margin = low == 0 ? 0.5 : std::abs(low) / 10;
    if (low != 0) low -= margin;
    high += margin;
  }
  double const tick = round_up((high - low) / static_cast<double>(ticks_max));
  return {.low = std::floor(low / tick + 1e-9) * tick, .high = std::ceil(high / tick - 1e-9) * tick, .tick = tick};
}

Axis step_axis(double last, std::size_t ticks_max) {
  Axis axis = axis_for(0, last, ticks_max);
  axis.tick = std::max(axis.tick, 1.0);
  axis.high = last;
  return axis;
}

std::string bytes_text(double bytes) {
  NumberUnit const unit = byte_unit(bytes);
  return unit.size == 1 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3g} {}", bytes / unit.size, unit.name);
}

std::string count_text(double count) {
  std::string digits = fmt::format("{:.0f}", count);
  for (auto end = static_cast<std::ptrdiff_t>(digits.size()) - 3; end > (count < 0 ? 1 : 0); end -= 3) {
    digits.insert(static_cast<std::size_t>(end), ",");
  }
  return digits;
}

std::string number_text(double number) { return fmt::format("{:.4g}", number); }

std::string percent_text(double part, double whole) {
  if (whole == 0) return "0 %";
  double const percent = 100 * part / whole;
  return std::abs(percent) < 9.95 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

}  // namespace gpups::trainer::report
