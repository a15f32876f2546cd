// SPDX-License-Identifier: Apache-2.0
#include "comm/payloads.hpp"

#include "comm/payload/local.hpp"
#include "kernels/build_config.hpp"
#if GPUPS_HAS_UCX
#include "comm/payload/ucx.hpp"
#include "comm/ucx/links.hpp"
#endif
#include "comm/sim/network.hpp"

namespace gpups::comm {
namespace {

std::vector<std::unique_ptr<Payload>> make_local(int ranks) { return make_local_payloads(ranks); }
std::vector<std::unique_ptr<Payload>> make_sim(int ranks) {
  return make_local_payloads(ranks, std::make_shared<SimNetwork>(Simulation{}));
}

#if GPUPS_HAS_UCX
std::vector<std::unique_ptr<Payload>> make_ucx(int ranks) {
  std::vector<std::unique_ptr<Payload>> ends;
  for (auto const& link : make_ucx_links(ranks)) ends.push_back(make_ucx_payload(link));
  return ends;
}
#endif

constexpr PayloadEntry kAll[] = {
    {"local", make_local},
    {"sim", make_sim},
#if GPUPS_HAS_UCX
    {"ucx", make_ucx},
#endif
};

}  // namespace

std::span<PayloadEntry const> payloads() { return kAll; }

}  // namespace gpups::comm
