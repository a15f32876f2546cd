// SPDX-License-Identifier: Apache-2.0
// GPUPS_ASSERT(condition) aborts a debug build if the condition is false, which only a bug in gpups can cause. Device
// code includes this file, and not kernels/base/check.hpp with its text formatting.
#pragma once

#include <cassert>

#define GPUPS_ASSERT(...) assert((__VA_ARGS__))
