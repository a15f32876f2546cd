// SPDX-License-Identifier: Apache-2.0
#include "comm/group/all_transports.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <thread>

#include "comm/sim/network.hpp"
#include "kernels/base/build_config.hpp"
#if GPUPS_HAS_UCX
#include "comm/ucx/local_workers.hpp"
#endif
#if GPUPS_HAS_NCCL
#include "comm/nccl/communicator.hpp"
#endif

namespace gpups::comm {
namespace {

std::vector<std::unique_ptr<Transport>> local_transports(int ranks) { return make_local_transports(ranks); }
std::vector<std::unique_ptr<Transport>> sim_transports(int ranks) {
  return make_local_transports(ranks, std::make_shared<SimNetwork>(Simulation{}));
}

#if GPUPS_HAS_UCX
std::vector<std::unique_ptr<Transport>> ucx_transports(int ranks) {
  std::vector<std::unique_ptr<Transport>> ends;
  for (auto const& ucx : make_local_ucx_workers(ranks)) ends.push_back(make_ucx_transport(ucx, nullptr));
  return ends;
}
#endif

constexpr TransportFactory kTransports[] = {
    {"local", local_transports},
    {"sim", sim_transports},
#if GPUPS_HAS_UCX
    {"ucx", ucx_transports},
#endif
};

std::vector<std::unique_ptr<BulkTransport>> local_bulk_transports(int ranks) {
  return make_local_bulk_transports(ranks);
}
std::vector<std::unique_ptr<BulkTransport>> sim_bulk_transports(int ranks) {
  return make_local_bulk_transports(ranks, std::make_shared<SimNetwork>(Simulation{}));
}

#if GPUPS_HAS_UCX
std::vector<std::unique_ptr<BulkTransport>> ucx_bulk_transports(int ranks) {
  std::vector<std::unique_ptr<BulkTransport>> ends;
  for (auto const& ucx : make_local_ucx_workers(ranks)) ends.push_back(make_ucx_bulk_transport(ucx));
  return ends;
}
#endif

std::string lacks_nothing(int) { return {}; }

#if GPUPS_HAS_UCX
// As ucx, with NCCL between GPUs.
std::string lacks_for_nccl(int ranks) {
  if (!GPUPS_HAS_NCCL) return "this build has no NCCL";
  int const gpus = cuda_device_count();
  return gpus >= ranks ? "" : fmt::format("there are {} GPUs for {} ranks", gpus, ranks);
}
std::vector<std::unique_ptr<BulkTransport>> nccl_bulk_transports(int ranks) {
  std::vector<std::unique_ptr<BulkTransport>> ends(static_cast<std::size_t>(ranks));
#if GPUPS_HAS_NCCL
  constexpr double kTimeout_s = 60;
  auto const workers = make_local_ucx_workers(ranks);
  std::string const id = make_nccl_id();
  std::vector<std::thread> threads;  // one for each rank, since ranks wait for each other
  for (std::uint32_t rank = 0; rank < ends.size(); ++rank) {
    threads.emplace_back([&, rank] {
      auto const device = Device::cuda(static_cast<int>(rank));
      ends[rank] = make_ucx_bulk_transport(workers[rank], make_nccl_fabric(
                                                              id, Rank{rank}, ranks, device, [] {}, kTimeout_s));
    });
  }
  for (std::thread& thread : threads) thread.join();
#endif
  return ends;
}
#endif

constexpr BulkTransportFactory kBulkTransports[] = {
    {"local", lacks_nothing, local_bulk_transports},
    {"sim", lacks_nothing, sim_bulk_transports},
#if GPUPS_HAS_UCX
    {"ucx", lacks_nothing, ucx_bulk_transports},
    {"nccl", lacks_for_nccl, nccl_bulk_transports},
#endif
};

}  // namespace

std::span<TransportFactory const> all_transports() { return kTransports; }

std::span<BulkTransportFactory const> all_bulk_transports() { return kBulkTransports; }

}  // namespace gpups::comm
