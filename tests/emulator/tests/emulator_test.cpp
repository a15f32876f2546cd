// SPDX-License-Identifier: Apache-2.0
// The emulator finds planted faults, executes right kernels as a GPU does, and counts their accesses.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "tests/emulator/machine/device_memory.hpp"
#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"
#include "tests/emulator/tests/planted_kernels.hpp"

namespace gpups::emulator::test::emulator_test {
namespace {

using testing::HasSubstr;

// A stream, device memory of 256 integers, and the options, which are restored afterwards.
class Emulator : public testing::Test {
 protected:
  static constexpr int kIntegers = 256;
  static constexpr std::size_t kBytes = kIntegers * sizeof(int);

  void SetUp() override {
    options() = {};
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
  }
  void TearDown() override {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaFree(memory_);
    (void)cudaStreamDestroy(stream_);
    (void)cudaGetLastError();
    options() = options_;
  }

  int* integers() { return static_cast<int*>(memory_); }
  std::vector<int> result() {
    std::vector<int> host(kIntegers);
    EXPECT_EQ(cudaMemcpy(host.data(), memory_, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }
  // The next wait returns the error, whose report has the text.
  void expect_error(cudaError_t error, char const* text) {
    EXPECT_EQ(cudaStreamSynchronize(stream_), error);
    EXPECT_THAT(last_report(), HasSubstr(text));
  }
  // Runs `check` in order, and with random interleavings.
  template <class Check>
  void with_interleavings(Check check) {
    check();
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      options().seed = seed;
      options().resident = 4;
      check();
    }
  }

  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  Options const options_ = options();  // of the environment
};

TEST_F(Emulator, FindsWritePastTheEnd) {
  launch_number(stream_, integers(), kIntegers);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  std::vector<int> expected(kIntegers);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(result(), expected);

  launch_number(stream_, integers(), kIntegers + 1);
  expect_error(cudaErrorIllegalAddress, "write of 4 bytes");
  EXPECT_THAT(last_report(), HasSubstr("0 bytes after the end of 1024 bytes of device memory"));
}

TEST_F(Emulator, FindsAddressOfHost) {
  std::vector<int> host(kIntegers);
  launch_number(stream_, host.data(), kIntegers);
  expect_error(cudaErrorIllegalAddress, "write of 4 bytes");
}

TEST_F(Emulator, FindsUseAfterFree) {
  void* freed = nullptr;
  ASSERT_EQ(cudaMalloc(&freed, kBytes), cudaSuccess);
  ASSERT_EQ(cudaFree(freed), cudaSuccess);
  launch_number(stream_, static_cast<int*>(freed), kIntegers);
  expect_error(cudaErrorIllegalAddress, "write of 4 bytes");
  EXPECT_NE(cudaFree(freed), cudaSuccess);
}

TEST_F(Emulator, FindsMisalignedAccess) {
  float* const out = reinterpret_cast<float*>(integers());
  launch_read_float(stream_, reinterpret_cast<char const*>(integers()) + 4, out);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  launch_read_float(stream_, reinterpret_cast<char const*>(integers()) + 6, out);
  expect_error(cudaErrorIllegalAddress, "misaligned access of 4 bytes");
}

TEST_F(Emulator, MissingBarrierGivesWrongResult) {
  std::vector<int> expected(kIntegers);
  for (int i = 0; i < kIntegers; ++i) expected[static_cast<std::size_t>(i)] = kIntegers - 1 - i;
  with_interleavings([&] {
    launch_reverse(stream_, integers(), true);
    EXPECT_EQ(result(), expected);
    launch_reverse(stream_, integers(), false);
    EXPECT_NE(result(), expected);
  });
}

TEST_F(Emulator, FindsShuffleInBranch) {
  with_interleavings([&] {
    launch_broadcast(stream_, integers(), false);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(result()[31], 100);
    launch_broadcast(stream_, integers(), true);
    expect_error(cudaErrorLaunchTimeout, "16 threads wait at 'shfl.sync");
  });
}

TEST_F(Emulator, FindsWrongMask) {
  launch_shuffle_with_wrong_mask(stream_, integers());
  expect_error(cudaErrorIllegalAddress, "is not in its mask 0xffff");
}

TEST_F(Emulator, FindsDeadlock) {
  launch_deadlock(stream_, integers());
  expect_error(cudaErrorLaunchTimeout, "no thread of a block");
}

TEST_F(Emulator, RandomInterleavingShowsRace) {
  constexpr int kThreads = 1000;
  bool lost = false;
  with_interleavings([&] {
    ASSERT_EQ(cudaMemset(memory_, 0, kBytes), cudaSuccess);
    launch_add_one(stream_, integers(), kThreads, true);
    EXPECT_EQ(result()[0], kThreads);
    ASSERT_EQ(cudaMemset(memory_, 0, kBytes), cudaSuccess);
    launch_add_one(stream_, integers(), kThreads, false);
    lost |= result()[0] != kThreads;
  });
  EXPECT_TRUE(lost);
}

TEST_F(Emulator, LazyStreamShowsMissingWait) {
  options().lazy = true;
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, kBytes, 0), cudaSuccess);
  auto* const host = static_cast<int*>(pinned);
  host[1] = -1;
  launch_number(stream_, integers(), kIntegers);
  ASSERT_EQ(cudaMemcpyAsync(host, memory_, kBytes, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_EQ(host[1], -1);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(host[1], 1);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(Emulator, LazyStreamsFollowEvents) {
  options().lazy = true;
  cudaStream_t after = nullptr;
  cudaEvent_t written = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&after, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&written, cudaEventDisableTiming), cudaSuccess);
  launch_number(stream_, integers(), kIntegers);
  ASSERT_EQ(cudaEventRecord(written, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(after, written, 0), cudaSuccess);
  std::vector<int> host(kIntegers);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), memory_, kBytes, cudaMemcpyDeviceToHost, after), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(after), cudaSuccess);
  EXPECT_EQ(host.back(), kIntegers - 1);
  EXPECT_EQ(cudaEventDestroy(written), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(after), cudaSuccess);
}

TEST_F(Emulator, RejectsCopyPastTheEnd) {
  std::vector<int> host(kIntegers + 1);
  EXPECT_NE(cudaMemcpyAsync(host.data(), memory_, kBytes + 4, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_NE(cudaMemsetAsync(memory_, 0, kBytes + 4, stream_), cudaSuccess);
}

TEST_F(Emulator, LimitsMemory) {
  options().memory_mib = 1;
  void* large = nullptr;
  EXPECT_EQ(cudaMalloc(&large, std::size_t{2} << 20), cudaErrorMemoryAllocation);
}

// Returns what a launch has counted.
template <class Launch>
KernelCounts counts_of(cudaStream_t stream, Launch launch) {
  options().counts = true;
  runtime_counts() = {};
  launch();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(runtime_counts().launches, 1U);
  KernelCounts all;
  for (auto const& [name, counts] : runtime_counts().kernels) all += counts;
  return all;
}

TEST_F(Emulator, CountsSectors) {
  constexpr int kThreads = 64, kWarps = 2, kColumns = 32;
  void* rows = nullptr;
  ASSERT_EQ(cudaMalloc(&rows, kThreads * kColumns * sizeof(float)), cudaSuccess);
  auto const read = [&](bool strided) {
    return counts_of(stream_, [&] {
      launch_read_column(stream_, static_cast<float*>(rows), reinterpret_cast<float*>(integers()), kThreads, strided);
    });
  };
  KernelCounts const dense = read(false), strided = read(true);
  // A warp reads 128 bytes that follow each other, or a float in each of 32 rows of 128 bytes.
  EXPECT_EQ(dense.loads.accesses, kWarps);
  EXPECT_EQ(dense.loads.sectors, kWarps * 4);
  EXPECT_EQ(dense.loads.bytes, kThreads * sizeof(float));
  EXPECT_EQ(strided.loads.sectors, kWarps * 32);
  EXPECT_EQ(strided.stores.sectors, kWarps * 4);
  EXPECT_EQ(strided.partial_accesses, 0U);
  EXPECT_EQ(cudaFree(rows), cudaSuccess);
}

TEST_F(Emulator, CountsBankConflicts) {
  auto const conflicts = [&](int stride) {
    return counts_of(stream_, [&] { launch_shared_stride(stream_, integers(), stride); }).bank_conflicts;
  };
  EXPECT_EQ(conflicts(1), 0U);
  EXPECT_EQ(conflicts(31), 0U);
  EXPECT_EQ(conflicts(2), 2U);        // a write and a read, each in two cycles
  EXPECT_EQ(conflicts(32), 2U * 31);  // all in one bank
}

TEST_F(Emulator, CountsAtomicsAndPartialWarps) {
  ASSERT_EQ(cudaMemset(memory_, 0, kBytes), cudaSuccess);
  KernelCounts const counts = counts_of(stream_, [&] { launch_add_one(stream_, integers(), 40, true); });
  EXPECT_EQ(counts.atomics.accesses + counts.stores.accesses, 2U);
  EXPECT_EQ(counts.partial_accesses, 1U);  // the second warp has eight threads with work
}

TEST_F(Emulator, CountsLatenciesThatLoadsExpose) {
  ASSERT_EQ(cudaMemset(memory_, 0, kBytes), cudaSuccess);
  auto const exposed = [&](bool chained) {
    return counts_of(stream_, [&] { launch_read_steps(stream_, integers(), chained); }).exposed_loads;
  };
  EXPECT_EQ(exposed(true), 4U);
  EXPECT_EQ(exposed(false), 1U);
}

// A process with an allocation at its exit, which ends so with the option.
TEST_F(Emulator, FindsLeakAtExit) {
  auto const exit_with_memory = [] {
    options().leaks = true;
    std::exit(0);
  };
  EXPECT_EXIT(exit_with_memory(), testing::ExitedWithCode(1), "1 allocations of 1024 bytes were not freed");
  auto const exit_without = [this] {
    options().leaks = true;
    (void)cudaFree(memory_);
    std::exit(0);
  };
  EXPECT_EXIT(exit_without(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gpups::emulator::test::emulator_test
