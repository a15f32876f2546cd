// SPDX-License-Identifier: Apache-2.0
// Scales with ticks at round numbers, and numbers as short texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer::report {

// A unit of an axis or a text, for example 1e6 and "MB".
struct NumberUnit {
  double size = 1;
  std::string name;
};
// Return the unit in which numbers up to `most` are short: B, kB, MB, ...; or "rows", "thousand rows", ...
NumberUnit byte_unit(double most);
NumberUnit count_unit(double most, std::string_view things);

// A scale from `low` to `high`, with ticks at multiples of `tick`. `low` is a multiple.
struct Axis {
  double low = 0, high = 1, tick = 1;

  // Returns where a number is between the positions `from` of low and `to` of high.
  double position(double number, double from, double to) const {
    return from + (number - low) / (high - low) * (to - from);
  }
  std::vector<double> ticks() const;
  // Returns a tick as text, in a unit.
  std::string text(double tick_at, NumberUnit const& unit) const;
};
// Returns a scale that contains all numbers from `low` to `high` and has at most `ticks_max` + 2 ticks, at multiples of
// 1, 2 or 5 times a power of ten. It begins and ends with a tick.
Axis axis_for(double low, double high, std::size_t ticks_max);
// Returns the same from 0 to `last`, where it ends. last: at least 1.
Axis step_axis(double last, std::size_t ticks_max);

std::string bytes_text(double bytes);                 // "1.23 MB"
std::string count_text(double count);                 // "12,345"
std::string number_text(double number);               // "0.1235": four significant digits
std::string percent_text(double part, double whole);  // "12.3 %"; "0 %" of nothing

}  // namespace gpups::trainer::report
