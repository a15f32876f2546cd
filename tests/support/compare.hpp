// SPDX-License-Identifier: Apache-2.0
// Comparison of lists of numbers.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace gpups::test {

// Returns the first difference of two lists as text, or an empty string if they are equal.
template <class T>
std::string differ(char const* what, std::vector<T> const& got, std::vector<T> const& want) {
  if (got.size() != want.size()) return fmt::format("{}: {} elements instead of {}", what, got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    if constexpr (std::is_arithmetic_v<T>) return fmt::format("{}[{}]: {} instead of {}", what, i, got[i], want[i]);
    return fmt::format("{}[{}] differs", what, i);
  }
  return {};
}

// The same with a tolerance of relative * max(1, |want[i]|).
inline std::string differ(char const* what, std::vector<float> const& got, std::vector<double> const& want,
                          double relative) {
  if (got.size() != want.size()) return fmt::format("{}: {} elements instead of {}", what, got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    double const error = std::abs(static_cast<double>(got[i]) - want[i]);
    if (!(error <= relative * std::max(1.0, std::abs(want[i])))) {
      return fmt::format("{}[{}]: {} instead of {}", what, i, got[i], want[i]);
    }
  }
  return {};
}

template <class T>
std::string bytes_of(std::vector<T> const& v) {
  return v.empty() ? std::string{} : std::string(reinterpret_cast<char const*>(v.data()), v.size() * sizeof(T));
}

}  // namespace gpups::test
