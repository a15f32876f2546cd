// SPDX-License-Identifier: Apache-2.0
// The levels of the host code: instruction sets for which kernels are compiled. Level 0 is the code for the oldest
// processor that the build supports. The results of all levels have the same bits.
#pragma once

#include <span>
#include <string_view>

#include "kernels/base/build_config.hpp"

namespace gpups::kernels {

// Returns the level of this process, which is the best one that the processor has, or the one that the environment
// variable GPUPS_HOST_LEVEL sets. It is selected at the first call, which throws Error if the variable is not the name
// of such a level. A process on a processor without level 0 of a portable build ends with a message as it starts.
int host_level();

// Returns the names of the levels of this build that the processor has, from slow to fast; for instance x86-64-v3,
// x86-64-v4 and x86-64-v4+vbmi2.
std::span<std::string_view const> host_levels();
inline std::string_view host_level_name() { return host_levels()[static_cast<std::size_t>(host_level())]; }

// The code of level kLevel for a kernel with these arguments. The sources of kernels are compiled for each level, with
// GPUPS_COMPILED_LEVEL as its number, and then define only these functions.
template <int kLevel, class Result, class Exec, class Arguments>
Result run_at(Exec ex, Arguments const& arguments);

// Runs a kernel on the host, with the code for this processor. The code of level 0 is run(ex, arguments).
template <class Result, class Exec, class Arguments>
Result run_at_host_level(Exec ex, Arguments const& arguments) {
#if GPUPS_HOST_LEVEL_COUNT > 0
  switch (host_level()) {
#if GPUPS_HOST_LEVEL_COUNT > 1
    case 2:
      return run_at<2, Result>(ex, arguments);
#endif
    case 1:
      return run_at<1, Result>(ex, arguments);
    default:
      break;
  }
#endif
  return run(ex, arguments);
}

}  // namespace gpups::kernels
