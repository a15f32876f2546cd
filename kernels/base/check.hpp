// SPDX-License-Identifier: Apache-2.0
// Checks of conditions. GPUPS_REQUIRE throws Error if a user has made a mistake; GPUPS_ASSERT aborts a debug build if
// gpups has a bug.
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
