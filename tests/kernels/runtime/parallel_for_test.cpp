// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/arena.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpups::test::parallel_for_test {
namespace {

using kernels::parallel_for;

TEST(ParallelFor, CallsBodyOncePerIndexWithOneThread) {
  for (int threads : {1, 2, 3}) {
    for (std::size_t n : {0, 1, 2, 50}) {
      Stream stream(Device::host(), threads);
      std::vector<std::atomic<int>> calls(n);
      parallel_for(stream, n, [&](Stream& part, std::size_t i) {
        EXPECT_TRUE(part.device().is_host());
        EXPECT_EQ(part.threads(), 1);
        ++calls[i];
      });
      for (auto const& count : calls) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ParallelFor, ThrowsFirstExceptionAfterAllCallsReturn) {
  for (int threads : {1, 3}) {
    Stream stream(Device::host(), threads);
    std::atomic<int> calls = 0;
    std::string text;
    try {
      parallel_for(stream, 40, [&](Stream&, std::size_t i) {
        ++calls;
        if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
      });
    } catch (std::runtime_error const& error) {
      text = error.what();
    }
    EXPECT_EQ(text, "7");
    EXPECT_EQ(calls, 40);
  }
}

}  // namespace
}  // namespace gpups::test::parallel_for_test
