// SPDX-License-Identifier: Apache-2.0
#include "gpups/array.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace gpups {
namespace {

TEST(Array, TruncateKeepsMemoryUntilDestruction) {
  constexpr std::size_t kSize = 100000;
  auto const in_use = [] { return memory::usage(Device::host()).bytes; };
  std::size_t const before = in_use();
  {
    Array<int> numbers(Device::host(), kSize);
    std::iota(numbers.data(), numbers.data() + kSize, 0);
    numbers.truncate(3);
    Array<int> const moved = std::move(numbers);
    ASSERT_EQ(moved.size(), 3U);
    EXPECT_EQ(moved.bytes(), 3 * sizeof(int));
    EXPECT_EQ(moved.view()[2], 2);
    EXPECT_GE(in_use(), before + kSize * sizeof(int));
  }
  EXPECT_EQ(in_use(), before);
}

}  // namespace
}  // namespace gpups
