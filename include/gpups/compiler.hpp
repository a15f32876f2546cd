// SPDX-License-Identifier: Apache-2.0
// What every public header needs of the compiler. Applications do not use it.
#pragma once

#if __cplusplus < 202002L
#error "gpups needs C++20: compile with -std=c++20 (in CMake: target_compile_features(app PRIVATE cxx_std_20))"
#include <gpups_needs_cxx20>  // does not exist: ends the compilation, before many errors follow
#endif

// Marks what the shared library exports; everything else is hidden.
#define GPUPS_EXPORT [[gnu::visibility("default")]]
// Marks the definition of a class that is a member of an exported class.
#define GPUPS_HIDDEN [[gnu::visibility("hidden")]]
