// SPDX-License-Identifier: Apache-2.0
// Sums of more bytes than a signed 32-bit number can count, over ranks that are threads. They run alone: each takes up
// to five times its size of memory.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "gpups/gpups.hpp"
#include "kernels/runtime/host_memory.hpp"

namespace gpups::test::allreduce_large_test {
namespace {

constexpr std::size_t kSize = (std::size_t{1} << 29) + 5;
constexpr std::uint64_t kBytes = kSize * sizeof(float);
constexpr int kRanks = 2;

// Whole numbers, whose sums are exact. 1000 does not divide powers of two, so that exchanged parts give wrong sums.
float term(std::size_t rank, std::size_t i) { return static_cast<float>((rank + 1) * (i % 1000)); }

class AllreduceLarge : public testing::TestWithParam<std::string> {};

TEST_P(AllreduceLarge, AllElementsAreCorrect) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "it takes minutes with sanitizers";
#endif
  if (kernels::host_memory().available < 5 * kBytes + (std::uint64_t{2} << 30)) {
    GTEST_SKIP() << "less than 12 GiB of memory are available";
  }
  std::array<std::size_t, kRanks> first_wrong{};
  run_ranks(Group::threads(kRanks), [&](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    std::size_t const me = number(group.rank());
    Array<float> values(Device::host(), kSize);
    for (std::size_t i = 0; i < kSize; ++i) values[i] = term(me, i);
    auto const sum = group.begin_allreduce(stream, std::move(values), {.algorithm = GetParam()});
    ReducedVector const sums = group.wait_result(stream, sum);
    ASSERT_EQ(sums.values.size(), kSize);
    std::size_t i = 0;
    while (i < kSize && sums.values[i] == term(0, i) + term(1, i)) ++i;
    first_wrong[me] = i;
    store.wait_barrier();
  });
  for (std::size_t const i : first_wrong) EXPECT_EQ(i, kSize);
}

INSTANTIATE_TEST_SUITE_P(All, AllreduceLarge, testing::Values("reduce_scatter_allgather", "dsar_split_allgather"),
                         [](auto const& name) { return name.param; });

}  // namespace
}  // namespace gpups::test::allreduce_large_test
