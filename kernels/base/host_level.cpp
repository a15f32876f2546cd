// SPDX-License-Identifier: Apache-2.0
// This file is compiled without the instructions of any level.
#include "kernels/base/host_level.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#include "kernels/base/check.hpp"

namespace gpups::kernels {
namespace {

constexpr std::string_view kNames[] = {GPUPS_HOST_LEVEL_NAMES};
static_assert(std::size(kNames) == GPUPS_HOST_LEVEL_COUNT + 1, "each level has a name");

#if GPUPS_HOST_LEVEL_COUNT == 0
std::size_t count_levels() { return 1; }
#elif defined(__x86_64__)
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
std::size_t count_levels() {
  if (!has_avx512()) return 1;
  return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") ? 3 : 2;
}

// Runs before other code of the program, which has instructions of level 0: without a message, a processor that lacks
// them would end the program with SIGILL.
[[gnu::constructor(101)]] void require_level_0() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return;
  constexpr char const kText[] =
      "gpups: this processor lacks AVX2, FMA or BMI2 (gpups needs their instructions): use a newer processor\n";
  static_cast<void>(!write(STDERR_FILENO, kText, sizeof kText - 1));
  _exit(1);
}
#elif defined(__aarch64__)
std::size_t count_levels() { return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0 ? 2 : 1; }
#endif

int find_level() {
  auto const levels = host_levels();
  char const* const wanted = std::getenv("GPUPS_HOST_LEVEL");
  if (wanted == nullptr || *wanted == '\0') return static_cast<int>(levels.size()) - 1;
  auto const found = std::find(levels.begin(), levels.end(), wanted);
  if (found != levels.end()) return static_cast<int>(found - levels.begin());
  std::string known;
  for (std::string_view const level : levels) known += (known.empty() ? "" : ", ") + std::string(level);
  throw Error(
      fmt::format("GPUPS_HOST_LEVEL is \"{}\" (it selects the instructions of kernels, and this build on this "
                  "processor has {}): use one of these, or do not set it",
                  wanted, known));
}

}  // namespace

std::span<std::string_view const> host_levels() {
  static std::size_t const count = count_levels();
  return std::span(kNames).first(count);
}

int host_level() {
  static int const level = find_level();
  return level;
}

}  // namespace gpups::kernels
