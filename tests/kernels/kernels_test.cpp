// SPDX-License-Identifier: Apache-2.0
// Every kernel case on the host and on a GPU: results agree with the oracle, and bits do not depend on the number of
// threads. GPUPS_CASE_SEEDS sets the number of seeds for each size.
#include <gtest/gtest.h>

#include "tests/support/cases.hpp"
#include "tests/support/environment.hpp"

namespace gpups::test::kernels_test {
namespace {

constexpr CaseSize kSizes[] = {{0, 3}, {1, 1}, {5, 3}, {130, 100}, {1000, 17}, {9000, 8}, {20000, 4}, {700, 300}};

class Kernels : public testing::TestWithParam<KernelCase> {};

std::uint64_t seeds() {
  static std::uint64_t const count = environment_number("GPUPS_CASE_SEEDS", 3);
  return count;
}

// Returns the bits of the result. Compares the result with the oracle if `check` is set.
std::string bits(KernelCase const& kernel, Device device, int threads, CaseSize size, std::uint64_t seed, bool check) {
  Stream stream(device, threads);
  Problem const problem = kernel.make(stream, size, seed);
  problem.run(stream);
  stream.wait();
  std::string result = problem.bits(stream);
  if (check) {
    EXPECT_EQ(problem.wrong(stream), "") << to_string(device) << ", n = " << size.n << ", dim = " << size.dim
                                         << ", seed = " << seed << ", threads = " << threads;
  }
  return result;
}

TEST_P(Kernels, AgreesWithTheOracle) {
  for (CaseSize const size : kSizes) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
      auto const one = bits(GetParam(), Device::host(), 1, size, seed, true);
      EXPECT_EQ(one == bits(GetParam(), Device::host(), 2, size, seed, false), true) << "two threads, n = " << size.n;
      EXPECT_EQ(one == bits(GetParam(), Device::host(), 3, size, seed, false), true) << "three threads, n = " << size.n;
    }
  }
}

TEST_P(Kernels, AgreesWithTheOracleOnCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  for (CaseSize const size : kSizes) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
      auto const once = bits(GetParam(), Device::cuda(0), 0, size, seed, true);
      EXPECT_EQ(once == bits(GetParam(), Device::cuda(0), 0, size, seed, false), true) << "again, n = " << size.n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(kernel_cases().begin(), kernel_cases().end()),
                         [](auto const& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace gpups::test::kernels_test
