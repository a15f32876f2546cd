// SPDX-License-Identifier: Apache-2.0
// The emulated NCCL: two ranks of this process, each with a device.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"

namespace gpups::emulator::test::nccl_test {
namespace {

constexpr int kRanks = 2, kFloats = 8;
constexpr std::size_t kBytes = kFloats * sizeof(float);

// A rank: its communicator, and an array on a stream of its device.
struct End {
  int device;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* data = nullptr;

  void use() const { ASSERT_EQ(cudaSetDevice(device), cudaSuccess); }
  std::vector<float> result() const {
    std::vector<float> host(kFloats);
    EXPECT_EQ(cudaMemcpyAsync(host.data(), data, kBytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    return host;
  }
  ncclResult_t state() const {
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    return state;
  }
};

class EmulatedNccl : public testing::TestWithParam<Options> {
 protected:
  void SetUp() override {
    options() = GetParam();
    options().devices = kRanks;
    ASSERT_EQ(ncclGetUniqueId(&id_), ncclSuccess);
    for (End& end : ends_) {
      end.use();
      ASSERT_EQ(cudaStreamCreateWithFlags(&end.stream, cudaStreamNonBlocking), cudaSuccess);
      ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&end.data), kBytes), cudaSuccess);
      std::vector<float> const mine(kFloats, static_cast<float>(end.device) + 1);
      ASSERT_EQ(cudaMemcpyAsync(end.data, mine.data(), kBytes, cudaMemcpyHostToDevice, end.stream), cudaSuccess);
    }
  }
  void TearDown() override {
    for (End& end : ends_) {
      if (end.comm != nullptr) (void)ncclCommAbort(end.comm);
    }
    for (End& end : ends_) {
      end.use();
      (void)cudaFree(end.data);
      (void)cudaStreamDestroy(end.stream);
    }
    (void)cudaSetDevice(0);
    options() = options_;
  }

  // Creates communicators on these devices.
  void connect(std::array<int, kRanks> devices) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      End& end = ends_[static_cast<std::size_t>(rank)];
      ASSERT_EQ(cudaSetDevice(devices[static_cast<std::size_t>(rank)]), cudaSuccess);
      ASSERT_EQ(ncclCommInitRankConfig(&end.comm, kRanks, id_, rank, &config), ncclInProgress);
      end.use();
    }
  }
  void wait_ready() {
    for (int polls = 0; polls < 100; ++polls) {
      bool ready = true;
      for (End const& end : ends_) ready = end.state() == ncclSuccess && ready;
      if (ready) return;
    }
    FAIL() << "the ranks do not get ready";
  }
  End& first() { return ends_[0]; }
  End& second() { return ends_[1]; }

  std::array<End, kRanks> ends_{End{0}, End{1}};
  ncclUniqueId id_{};
  Options const options_ = options();
};
INSTANTIATE_TEST_SUITE_P(Orders, EmulatedNccl,
                         testing::Values(Options{}, Options{.lazy = true}, Options{.lazy = true, .nccl_polls = 3}));

std::vector<float> all(float value) { return std::vector<float>(kFloats, value); }

TEST_P(EmulatedNccl, SumsInPlaceAndSends) {
  connect({0, 1});
  wait_ready();
  for (End const& end : ends_)
    (void)ncclAllReduce(end.data, end.data, kFloats, ncclFloat32, ncclSum, end.comm, end.stream);
  wait_ready();
  EXPECT_EQ(first().result(), all(3));
  EXPECT_EQ(second().result(), all(3));

  ASSERT_EQ(cudaMemsetAsync(first().data, 0, kBytes, first().stream), cudaSuccess);
  (void)ncclSend(first().data, kBytes, ncclUint8, 1, first().comm, first().stream);
  (void)ncclRecv(second().data, kBytes, ncclUint8, 0, second().comm, second().stream);
  wait_ready();
  EXPECT_EQ(second().result(), all(0));
}

// The polls before an operation do not count.
TEST_P(EmulatedNccl, OperationStartsAfterItsPolls) {
  connect({0, 1});
  wait_ready();
  for (int polls = 0; polls < 10; ++polls) EXPECT_EQ(first().state(), ncclSuccess);
  (void)ncclRecv(first().data, kBytes, ncclUint8, 1, first().comm, first().stream);
  int in_progress = 0;
  while (first().state() == ncclInProgress) ++in_progress;
  EXPECT_EQ(in_progress, std::max(0, GetParam().nccl_polls - 1));
}

// The first rank waits in its stream for data that are never sent; ncclCommAbort() ends the wait.
TEST_P(EmulatedNccl, AbortEndsWaiting) {
  connect({0, 1});
  wait_ready();
  (void)ncclRecv(first().data, kBytes, ncclUint8, 1, first().comm, first().stream);
  while (first().state() == ncclInProgress) continue;
  cudaEvent_t after = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&after, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(after, first().stream), cudaSuccess);
  for (int queries = 0; queries < 20; ++queries) EXPECT_EQ(cudaEventQuery(after), cudaErrorNotReady);
  ASSERT_EQ(ncclCommAbort(std::exchange(first().comm, nullptr)), ncclSuccess);
  EXPECT_EQ(cudaEventSynchronize(after), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(after), cudaSuccess);
  (void)cudaGetLastError();
}

TEST_P(EmulatedNccl, FindsDifferentSizes) {
  connect({0, 1});
  wait_ready();
  (void)ncclSend(first().data, kBytes, ncclUint8, 1, first().comm, first().stream);
  (void)ncclRecv(second().data, kBytes / 2, ncclUint8, 0, second().comm, second().stream);
  while (first().state() == ncclInProgress || second().state() == ncclInProgress) continue;
  EXPECT_EQ(cudaStreamSynchronize(second().stream), cudaErrorIllegalAddress);
  EXPECT_THAT(last_report(), testing::HasSubstr("rank 1 expects 16 bytes of rank 0, which sends 32"));
  EXPECT_NE(second().state(), ncclSuccess);
}

TEST_P(EmulatedNccl, RejectsRanksThatShareADevice) {
  connect({0, 0});
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    (void)second().state();
    state = first().state();
  }
  EXPECT_EQ(state, ncclInvalidUsage);
}

TEST_P(EmulatedNccl, RejectsMemoryOfTheHostAndOfOtherDevices) {
  connect({0, 1});
  wait_ready();
  std::vector<float> host(kFloats);
  EXPECT_EQ(ncclSend(host.data(), kBytes, ncclUint8, 1, first().comm, first().stream), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(second().data, kBytes, ncclUint8, 1, first().comm, first().stream), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(first().comm), testing::HasSubstr("are not in memory of device 0"));
}

}  // namespace
}  // namespace gpups::emulator::test::nccl_test
