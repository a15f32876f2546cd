// SPDX-License-Identifier: Apache-2.0
#include "gpups/array.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "gpups/error.hpp"
#include "gpups/stream.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups::array_test {
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

TEST(Matrix, RejectsMoreColumnsThanAnyMemoryHas) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the process";
#endif
  for (std::size_t const columns : {~std::size_t{0}, ~std::size_t{0} - 1, ~std::size_t{0} / 4, ~std::size_t{0} / 8}) {
    EXPECT_THROW(Matrix<float>(Device::host(), 2, columns), Error) << columns;
  }
}

// Queued work may still use a freed block. Its thread gets the block back at once, another one does not.
TEST(Array, OnCudaOtherThreadsGetFreedBlocksAfterQueuedWork) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  constexpr std::size_t kBytes = 12345;
  Device const device = Device::cuda(0);
  Stream stream(device);
  void* block = nullptr;
  auto const use_and_free = [&] {
    Array<char> const used(device, kBytes);
    if (block != nullptr) {
      EXPECT_EQ(used.data(), block);
    }
    block = used.data();
    memory::fill_bytes(stream, block, 1, kBytes);
  };
  use_and_free();
  use_and_free();
  Event const filled = stream.record();
  std::jthread([&] {
    Array<char> const other(device, kBytes);
    bool const same = other.data() == block;
    EXPECT_TRUE(!same || filled.done());
  });
  stream.wait();
}

TEST(Array, OnCudaStreamsOfOneThreadGetTheirOwnFreedBlocks) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  constexpr std::size_t kBytes = 23456;
  Device const device = Device::cuda(0);
  Stream one(device), other(device);
  auto const use_and_free = [&](Stream& stream) {
    kernels::MemoryScope const scope(stream);
    Array<char> const used(device, kBytes);
    memory::fill_bytes(stream, used.data(), 1, kBytes);
    return used.data();
  };
  for (int round = 0; round < 3; ++round) {
    char const* const block = use_and_free(one);
    EXPECT_EQ(use_and_free(one), block);
    Event const filled = one.record();
    bool const same = use_and_free(other) == block;
    EXPECT_TRUE(!same || filled.done());
    one.wait();
    other.wait();
  }
}

TEST(Array, ScopesNest) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  Stream const one(Device::cuda(0)), other(Device::cuda(0)), host(Device::host(), 1);
  auto const thread = kernels::memory_user();
  {
    kernels::MemoryScope const outer(one);
    auto const user = kernels::memory_user();
    EXPECT_NE(user, thread);
    {
      kernels::MemoryScope const inner(other);
      EXPECT_NE(kernels::memory_user(), user);
      kernels::MemoryScope const of_host(host);
      EXPECT_NE(kernels::memory_user(), user);
    }
    EXPECT_EQ(kernels::memory_user(), user);
    std::jthread([&] {
      EXPECT_NE(kernels::memory_user(), user);
      EXPECT_NE(kernels::memory_user(), thread);
    });
  }
  EXPECT_EQ(kernels::memory_user(), thread);
}

}  // namespace
}  // namespace gpups::array_test
