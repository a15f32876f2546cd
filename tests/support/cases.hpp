// SPDX-License-Identifier: Apache-2.0
// Kernel cases: each has inputs that depend on a seed, a call of a kernel, and a check of its result. Tests run all
// cases on every device, and the benchmark measures them.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "gpups/stream.hpp"

namespace gpups::test {

// The size of a case's inputs.
struct CaseSize {
  std::size_t n;    // entries, keys or rows
  std::size_t dim;  // columns of a row
};

// A case with inputs on a device. `run` may be called again for timing; the checks are valid after the first run.
struct Problem {
  std::function<void(Stream&)> run;
  // Returns how the result differs from the oracle's, or an empty string.
  std::function<std::string(Stream&)> wrong;
  // Returns the bits of the result, which must not depend on the number of threads.
  std::function<std::string(Stream&)> bits;
  std::size_t entries = 0;  // the benchmark reports time per entry
  std::size_t bytes = 0;    // bytes that the kernel must read and write
};

// A named case. `make` returns the problem of a size and seed on the stream's device.
struct KernelCase {
  char const* name;
  Problem (*make)(Stream& stream, CaseSize size, std::uint64_t seed);
};

// Prints a case in messages of GoogleTest.
inline void PrintTo(KernelCase const& kernel, std::ostream* out) { *out << kernel.name; }

// Returns all cases.
std::span<KernelCase const> kernel_cases();

// The cases of one kind of kernels each; kernel_cases() returns all of them.
std::span<KernelCase const> finding_cases();
std::span<KernelCase const> reading_cases();
std::span<KernelCase const> pooling_cases();
std::span<KernelCase const> writing_cases();
std::span<KernelCase const> rounding_cases();
std::span<KernelCase const> sending_cases();
std::span<KernelCase const> residual_cases();
std::span<KernelCase const> summing_cases();
std::span<KernelCase const> dense_cases();
std::span<KernelCase const> dense_optimizer_cases();
std::span<KernelCase const> wire_cases();
std::span<KernelCase const> packing_cases();
std::span<KernelCase const> sparse_cases();
std::span<KernelCase const> scoring_cases();
std::span<KernelCase const> word_cases();
std::span<KernelCase const> recommender_cases();
std::span<KernelCase const> candidate_cases();

}  // namespace gpups::test
