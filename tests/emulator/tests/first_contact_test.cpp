// SPDX-License-Identifier: Apache-2.0
// What the library does to the devices of a machine: contexts, peer access, and copies through pinned memory.
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <set>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/build_config.hpp"
#include "kernels/runtime/host_reads.hpp"
#include "kernels/runtime/memory_scope.hpp"
#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::emulator::first_contact_test {
namespace {

constexpr std::size_t kKeys = 100, kDim = 8;
constexpr int kSteps = 3;

// Trains a table for some steps. Returns the sum of the values of its rows.
double train(Group const& group, Device device) {
  Store store(group, {.device = device, .threads = 1});
  Stream stream = store.make_stream();
  TableId const table = store.add_table({.name = "rows", .dim = kDim, .optimizer = {.kind = Optimizer::Kind::kSgd}});
  std::vector<Key> keys;
  for (std::uint64_t k = 0; k < kKeys; ++k) keys.push_back(Key{k});
  auto const there = to_device(stream, keys);
  Matrix<float> rows(device, kKeys, kDim);
  auto const ones = gpups::test::matrix(stream, std::vector<float>(kKeys * kDim, 1), kKeys, kDim);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    TableBatch const part{.table = table, .keys = there};
    auto const batch = store.prepare(stream, Clock{step}, {&part, 1}, kKeys);
    store.wait_ready(batch);
    MatrixView<float> view = rows;
    store.pull(stream, batch, {&view, 1});
    TableGradients const gradients{.sources = ones};
    store.push(stream, batch, {&gradients, 1});
    store.advance_clock();
  }
  store.wait_applied();
  double sum = 0;
  for (float const value : to_host(stream, rows.view().flat())) sum += value;
  return sum;
}

// Returns whether two ranks, on devices of their own, end with the same rows.
bool trains_on_two_devices() {
  std::vector<double> sums(2);
  run_ranks(Group::threads(2), [&](Group const& group) {
    auto const rank = static_cast<int>(number(group.rank()));
    sums[static_cast<std::size_t>(rank)] = train(group, Device::cuda(rank));
  });
  return sums[0] == sums[1];
}

// Tests may change the options of the emulator.
class FirstContact : public testing::Test {
 protected:
  ~FirstContact() override { options() = before_; }

 private:
  Options const before_ = options();
};

// A process whose GPU is not the first one uses no memory of that.
TEST_F(FirstContact, CreatesAContextOnItsDeviceOnly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, which has no contexts
  auto const train_on_second = [] {
    options().devices = 3;
    run_ranks(Group::threads(1), [](Group const& group) { train(group, Device::cuda(1)); });
    std::exit(contexts() == std::set<int>{1} ? 0 : 1);
  };
  EXPECT_EXIT(train_on_second(), testing::ExitedWithCode(0), "");
}

TEST_F(FirstContact, LeavesTheDeviceThatAThreadHasChosen) {
  options().devices = 2;
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  Stream stream(Device::cuda(1), 1);
  stream.wait();
  EXPECT_EQ(current_device(), 0);
}

// Without peer access, the emulator rejects copies between devices.
TEST_F(FirstContact, RanksOnSeveralDevicesCopyDirectly) {
  options().devices = 2;
  EXPECT_TRUE(trains_on_two_devices());
  EXPECT_TRUE(is_peer_enabled(0, 1) && is_peer_enabled(1, 0));
}

TEST_F(FirstContact, RanksOnDevicesThatCannotReachEachOtherCopyThroughTheHost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto const train_apart = [] {
    options().devices = 2;
    options().peers = false;
    std::exit(trains_on_two_devices() ? 0 : 1);
  };
  EXPECT_EXIT(train_apart(), testing::ExitedWithCode(0), "");
}

#if GPUPS_HAS_NCCL
TEST_F(FirstContact, ThreadsSumIntegersByNccl) {
  constexpr int kRanks = 3;
  options().devices = kRanks;
  run_ranks(Group::threads(kRanks), [](Group const& group) {
    auto const rank = static_cast<int>(number(group.rank()));
    Device const device = Device::cuda(rank);
    EXPECT_EQ(group.wait_connect_devices(device), "copies of threads, and NCCL for sums");
    EXPECT_TRUE(group.sums_on_devices(device));
    EXPECT_FALSE(group.sums_on_devices(Device::host()));
    Stream stream(device, 1);
    auto const values = to_device(stream, std::vector<std::int64_t>(1000, (std::int64_t{1} << 40) + rank));
    group.wait_allreduce(stream, group.begin_allreduce(stream, values.view()));
    EXPECT_EQ(to_host(stream, values.view()), std::vector<std::int64_t>(1000, kRanks * (std::int64_t{1} << 40) + 3));
  });
}
#endif

TEST_F(FirstContact, SaysWhyThereIsNoDevice) {
  EXPECT_EQ(cuda_device_error(), "");
  options().devices = 0;
  EXPECT_EQ(device_from("auto"), Device::host());
  EXPECT_EQ(cuda_device_error(), "no CUDA-capable device is detected");
  gpups::test::expect_error([] { device_from("cuda"); },
                            {"0 CUDA devices were found, and CUDA reports 'no CUDA-capable"});
}

// Arrays and the scratch memory of kernels have allocators of their own, each of which keeps what was freed.
TEST_F(FirstContact, AllocatorsGiveMemoryToEachOther) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr std::size_t kMost = std::size_t{3} << 18;  // more than half of the memory
  auto const take_turns = [] {
    options().memory_mib = 1;
    Device const device = Device::cuda(0);
    Stream stream(device, 1);
    auto const scratch = [&] {
      void* memory = nullptr;
      auto const result = cudaMallocAsync(&memory, kMost, static_cast<cudaStream_t>(stream.native()));
      if (result == cudaSuccess) (void)cudaFreeAsync(memory, static_cast<cudaStream_t>(stream.native()));
      return result == cudaSuccess;
    };
    bool const first = scratch();
    { Array<std::byte> const array(device, kMost); }
    bool const without = scratch();  // the array is kept
    kernels::release_kept_memory(device);
    std::exit(first && !without && scratch() ? 0 : 1);
  };
  EXPECT_EXIT(take_turns(), testing::ExitedWithCode(0), "");
}

TEST_F(FirstContact, ReadsThroughPinnedMemory) {
  Stream stream(Device::cuda(0), 1);
  auto const a = to_device(stream, std::vector<int>{1, 2, 3}), b = to_device(stream, std::vector<int>{4});
  stream.wait();
  for (bool const both : {false, true}) {
    runtime_counts() = {};
    kernels::HostReads reads(stream);
    std::vector<int> first, second;
    reads.add(View<int const>(a), first);
    if (both) reads.add(View<int const>(b), second);
    reads.wait();
    EXPECT_EQ(first, (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(second, both ? std::vector<int>{4} : std::vector<int>{});
    EXPECT_EQ(runtime_counts().pageable_copies, 0U);
    EXPECT_EQ(runtime_counts().to_host.count, 1U);
  }
}

}  // namespace
}  // namespace gpups::emulator::first_contact_test
