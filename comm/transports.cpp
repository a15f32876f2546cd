// SPDX-License-Identifier: Apache-2.0
#include "comm/transports.hpp"

#include "comm/sim/network.hpp"
#include "comm/transport/local.hpp"

namespace gpups::comm {
namespace {

std::vector<std::unique_ptr<Transport>> make_local(int ranks) { return make_local_transports(ranks); }
std::vector<std::unique_ptr<Transport>> make_sim(int ranks) {
  return make_local_transports(ranks, std::make_shared<SimNetwork>(Simulation{}));
}

constexpr TransportEntry kAll[] = {
    {"local", make_local},
    {"sim", make_sim},
};

}  // namespace

std::span<TransportEntry const> transports() { return kAll; }

}  // namespace gpups::comm
