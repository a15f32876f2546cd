// SPDX-License-Identifier: Apache-2.0
#include "kernels/nontemporal.hpp"

#include <unistd.h>

namespace gpups::kernels {
namespace {

// Returns the bytes of the private cache of a core. The shared cache is not counted: on most machines its part for a
// core is smaller, and if it is larger, other programs use it too.
std::size_t core_cache_bytes() {
  constexpr long kLeast = 256 << 10;  // if the system does not report it
  long const bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<std::size_t>(bytes > kLeast ? bytes : kLeast);
}

}  // namespace

bool exceeds_caches(Arena const& arena, std::size_t bytes) {
  constexpr std::size_t kTimes = 8;  // measured: below it, ordinary stores are as fast, and the result stays in cache
  static std::size_t const core_cache = core_cache_bytes();
  return bytes > kTimes * core_cache * static_cast<std::size_t>(arena.threads());
}

}  // namespace gpups::kernels
