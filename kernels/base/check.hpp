// SPDX-License-Identifier: Apache-2.0
// Checks of conditions. GPUPS_REQUIRE throws Error if a user has made a mistake; GPUPS_ASSERT aborts a debug build if
// gpups has a bug. And checks of options that several folders have: times to wait, and numbers of threads.
#pragma once

#include <fmt/core.h>

#include "gpups/error.hpp"
#include "kernels/base/assert.hpp"  // GPUPS_ASSERT

namespace gpups::kernels {

// Throws Error with a formatted text. The many callers only list the arguments.
[[noreturn, gnu::cold]] void throw_formatted(fmt::string_view format, fmt::format_args arguments);
template <class... T>
[[noreturn, gnu::cold]] inline void throw_error(fmt::format_string<T...> format, T&&... arguments) {
  throw_formatted(format, fmt::make_format_args(arguments...));
}

}  // namespace gpups::kernels

// Throws Error with a formatted text if the condition is false. GPUPS_REQUIRE(condition, "what is wrong (why that is a
// problem): what to do", arguments...)
#define GPUPS_REQUIRE(condition, ...)                             \
  do {                                                            \
    if (!(condition)) ::gpups::kernels::throw_error(__VA_ARGS__); \
  } while (false)

namespace gpups::kernels {

inline constexpr double kTimeoutMax_s = 1e9;  // about 30 years
inline constexpr int kThreadsMax = 4096;

// Throws Error if `timeout_s` seconds are not a valid limit for waiting. name: the name of the option.
inline void require_timeout(double timeout_s, char const* name) {
  GPUPS_REQUIRE(timeout_s > 0 && timeout_s <= kTimeoutMax_s,
                "{} is {} s (a rank must wait for some time, but not forever): use more than 0, and at most 1e9", name,
                timeout_s);
}

// Throws Error if `threads` is not a valid number of threads. 0 is valid: the library then chooses.
inline void require_threads(int threads, char const* name) {
  GPUPS_REQUIRE(threads >= 0 && threads <= kThreadsMax,
                "{} is {} (it is a number of host threads): use 1 to {}, or 0 for a number that fits the cores", name,
                threads, kThreadsMax);
}

}  // namespace gpups::kernels
