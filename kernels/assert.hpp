// SPDX-License-Identifier: Apache-2.0
// Our own mistakes stop a debug build.
#pragma once

#include <cassert>

#define GPUPS_ASSERT(...) assert((__VA_ARGS__))
