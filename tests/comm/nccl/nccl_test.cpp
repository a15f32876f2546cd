// SPDX-License-Identifier: Apache-2.0
// NCCL between the GPUs of ranks. All ranks share one GPU: each is a process that NCCL treats as a machine.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/group/group_impl.hpp"
#include "comm/nccl/connect.hpp"
#include "gpups/gpups.hpp"
#include "kernels/base/build_config.hpp"
#include "tests/support/float_allreduce_workload.hpp"
#include "tests/support/rank_processes.hpp"
#if GPUPS_HAS_NCCL
#include "comm/nccl/communicator.hpp"
#endif

namespace gpups::test::nccl_test {
namespace {

// No process has a GPU, so there is no fabric and no reason to report.
TEST(Nccl, HostProcessesDoNotUseIt) {
  auto const pids = start_ranks(2, {}, [](Group const& group) {
    std::string const way = group.wait_connect_devices(Device::host());
    if (!way.empty()) throw Error(way);
    Store store(group, {.threads = 1});
    store.wait_barrier();
  });
  for (pid_t const pid : pids) EXPECT_TRUE(wait_success(pid));
}

#if GPUPS_HAS_NCCL

constexpr int kRanks = 2;
constexpr int kNoGpu = 77;

void require(bool ok, char const* what) {
  if (!ok) throw Error(what);
}

// Runs `body` on each rank, with the GPU that all share. CUDA does not survive a fork, so only the children look for a
// GPU.
void run_on_one_gpu(std::function<void(Group const&, Device)> const& body) {
  auto const pids = start_ranks(kRanks, {}, [&](Group const& group) {
    if (cuda_device_count() == 0) _exit(kNoGpu);
    std::string const host = "rank" + std::to_string(number(group.rank()));
    for (auto const& [name, value] : {std::pair("NCCL_HOSTID", host.c_str()),
                                      {"NCCL_SOCKET_IFNAME", "lo"},
                                      {"NCCL_IB_DISABLE", "1"},
                                      {"NCCL_NET", "Socket"},
                                      {"NCCL_MAX_CTAS", "2"}}) {
      ::setenv(name, value, 1);
    }
    body(group, Device::cuda(0));
  });
  bool skipped = false;
  for (pid_t const pid : pids) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    skipped = skipped || (WIFEXITED(status) && WEXITSTATUS(status) == kNoGpu);
    if (!skipped) {
      EXPECT_EQ(status, 0);
    }
  }
  if (skipped) GTEST_SKIP() << "there is no GPU";
}

void channels_on_one_gpu(std::function<void(comm::ControlChannel&, Device)> const& body) {
  run_on_one_gpu([&](Group const& group, Device device) {
    comm::ControlChannel channel(*group.impl().transport);
    body(channel, device);
    channel.wait_allgather("over");
  });
}

// Connects the GPUs of all ranks.
class ConnectedNccl : public comm::NcclCommunicator {
 public:
  ConnectedNccl(comm::ControlChannel& channel, Device device)
      : NcclCommunicator(channel.wait_broadcast(channel.rank() == 0 ? comm::make_nccl_id() : std::string()),
                         Rank{static_cast<std::uint32_t>(channel.rank())}, kRanks, device,
                         [&] { (void)channel.poll(); }) {}
};

TEST(Nccl, SumsInPlaceAndOutOfPlace) {
  channels_on_one_gpu([](comm::ControlChannel& channel, Device device) {
    ConnectedNccl nccl(channel, device);
    Stream stream(device);
    constexpr std::size_t kSize = 100003;
    auto const mine = static_cast<float>(channel.rank()) + 0.5F;
    Array<float> const terms = to_device(stream, std::vector<float>(kSize, mine));
    Array<float> const sums(device, kSize);
    auto const sum_into = [&](Array<float> const& into) {
      nccl.sum(stream, {terms.view(), into.view()});
      while (!nccl.ready()) std::this_thread::yield();
    };
    sum_into(sums);
    require(to_host<float>(stream, sums) == std::vector<float>(kSize, 2), "a sum is wrong");
    require(to_host<float>(stream, terms) == std::vector<float>(kSize, mine), "terms have changed");
    sum_into(terms);
    require(to_host<float>(stream, terms) == std::vector<float>(kSize, 2), "a sum in place is wrong");
    nccl.check();
  });
}

// Both directions at once, in one batch.
TEST(Nccl, SendsAndReceivesInOneBatch) {
  channels_on_one_gpu([](comm::ControlChannel& channel, Device device) {
    auto const fabric = comm::wait_connect_nccl(channel, device, true, 120).fabric;
    require(fabric != nullptr, "there is no fabric");
    constexpr std::size_t kSize = (std::size_t{5} << 20) + 3;
    Rank const other{static_cast<std::uint32_t>(1 - channel.rank())};
    auto const mine = static_cast<std::uint8_t>(channel.rank() + 1);
    Array<std::uint8_t> const source = to_device(fabric->stream(), std::vector<std::uint8_t>(kSize, mine));
    Array<std::uint8_t> const target(device, kSize);
    comm::DeviceFabric::P2pOp const parts[] = {{other, true, source.data(), kSize},
                                               {other, false, target.data(), kSize}};
    auto const over = fabric->move(parts);
    while (!over()) fabric->check();
    auto const moved = to_host<std::uint8_t>(fabric->stream(), target);
    require(moved == std::vector<std::uint8_t>(kSize, static_cast<std::uint8_t>(3 - mine)),
            "the bytes received are wrong");
  });
}

// By all algorithms, including NCCL.
TEST(Nccl, SumsForGroup) {
  run_on_one_gpu([](Group const& group, Device device) {
    require(group.wait_connect_devices(device) == "NCCL", "the GPUs are not connected");
    Store store(group, {.device = device, .threads = 1});
    auto stream = store.make_stream();
    for (std::size_t const size : {0, 1, 20000, 300000}) FloatSums(group, stream, size).check_all(true);
    store.wait_barrier();
  });
}

// A rank waits for data that are never sent. abort() ends its wait.
TEST(Nccl, AbortEndsWaiting) {
  channels_on_one_gpu([](comm::ControlChannel& channel, Device device) {
    ConnectedNccl nccl(channel, device);
    if (channel.rank() == 1) return;
    Stream stream(device);
    Array<std::uint8_t> const target(device, 1 << 20);
    comm::DeviceFabric::P2pOp const part{Rank{1}, false, target.data(), target.size()};
    nccl.move(stream, {&part, 1});
    // NCCL may first wait for the sender.
    auto const soon = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!nccl.ready() && std::chrono::steady_clock::now() < soon) std::this_thread::yield();
    std::thread other([&] { nccl.abort(); });
    stream.wait();
    other.join();
    try {
      nccl.move(stream, {&part, 1});
    } catch (Error const& error) {
      return require(std::string(error.what()).find("given up") != std::string::npos, error.what());
    }
    throw Error("NCCL accepted work after abort()");
  });
}

#else

TEST(Nccl, MovesAndSums) { GTEST_SKIP() << "this build has no NCCL"; }

#endif

}  // namespace
}  // namespace gpups::test::nccl_test
