// SPDX-License-Identifier: Apache-2.0
// Reads numbers as users write them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace gpups::trainer {

// Returns the finite decimal number that a text spells, or nothing. Numbers that are too small for a double become 0 or
// the nearest subnormal number, as strtod() and pandas read them; those that are too large are not finite.
inline std::optional<double> finite_number(std::string_view text) {
  double value = 0;
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || stop != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace gpups::trainer
