// SPDX-License-Identifier: Apache-2.0
// The two kinds of failure: a user's mistake throws gpups::Error, ours stops a debug build.
#pragma once

#include <fmt/core.h>

#include "gpups/error.hpp"
#include "kernels/assert.hpp"  // GPUPS_ASSERT

// GPUPS_REQUIRE(ok, "what is wrong (why that is a problem): what to do", arguments...)
#define GPUPS_REQUIRE(condition, ...)                                 \
  do {                                                                \
    if (!(condition)) throw ::gpups::Error(fmt::format(__VA_ARGS__)); \
  } while (false)
