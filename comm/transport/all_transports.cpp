// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/all_transports.hpp"

#include "comm/sim/network.hpp"
#include "kernels/base/build_config.hpp"
#if GPUPS_HAS_UCX
#include "comm/ucx/local_workers.hpp"
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

}  // namespace

std::span<TransportFactory const> all_transports() { return kTransports; }

}  // namespace gpups::comm
