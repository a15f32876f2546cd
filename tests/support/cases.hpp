// SPDX-License-Identifier: Apache-2.0
// The cases of kernels: inputs by seed, a run, and what is wrong with its result. One list feeds the tests, on every
// device, and the benchmark.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "gpups/stream.hpp"

namespace gpups::test {

struct CaseSize {
  std::size_t n;    // entries, keys or rows
  std::size_t dim;  // columns of a row
};

// Inputs on a device, ready to run. `run` may be called again for timing; results are those of the first run.
struct Problem {
  std::function<void(Stream&)> run;
  // Empty, or how the result differs from the oracle's.
  std::function<std::string(Stream&)> wrong;
  // The result's bits, to be the same for any number of threads.
  std::function<std::string(Stream&)> bits;
  std::size_t entries = 0;  // what a time is divided by
  std::size_t bytes = 0;    // that the kernel must move
};

struct KernelCase {
  char const* name;
  Problem (*make)(Stream& stream, CaseSize size, std::uint64_t seed);
};

// For messages of GoogleTest.
inline void PrintTo(KernelCase const& kernel, std::ostream* out) { *out << kernel.name; }

// All cases.
std::span<KernelCase const> kernel_cases();

// The cases by what they do; kernel_cases() is made of these.
std::span<KernelCase const> finding_cases();
std::span<KernelCase const> reading_cases();
std::span<KernelCase const> pooling_cases();
std::span<KernelCase const> writing_cases();
std::span<KernelCase const> rounding_cases();
std::span<KernelCase const> sending_cases();
std::span<KernelCase const> holding_cases();
std::span<KernelCase const> summing_cases();
std::span<KernelCase const> dense_cases();
std::span<KernelCase const> dense_optimizer_cases();
std::span<KernelCase const> wire_cases();
std::span<KernelCase const> narrow_cases();
std::span<KernelCase const> sparse_cases();
std::span<KernelCase const> scoring_cases();

}  // namespace gpups::test
