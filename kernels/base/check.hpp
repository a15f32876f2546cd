// SPDX-License-Identifier: Apache-2.0
// Checks of conditions. GPUPS_REQUIRE throws Error if a user has made a mistake; GPUPS_ASSERT aborts a debug build if
// gpups has a bug.
#pragma once

#include <fmt/core.h>

#include "gpups/error.hpp"
#include "kernels/base/assert.hpp"  // GPUPS_ASSERT

// Throws Error with a formatted text if the condition is false. GPUPS_REQUIRE(condition, "what is wrong (why that is a
// problem): what to do", arguments...)
#define GPUPS_REQUIRE(condition, ...)                                 \
  do {                                                                \
    if (!(condition)) throw ::gpups::Error(fmt::format(__VA_ARGS__)); \
  } while (false)
