// SPDX-License-Identifier: Apache-2.0
#include "comm/payloads.hpp"

#include "comm/payload/local.hpp"
#include "comm/sim/network.hpp"

namespace gpups::comm {
namespace {

std::vector<std::unique_ptr<Payload>> make_local(int ranks) { return make_local_payloads(ranks); }
std::vector<std::unique_ptr<Payload>> make_sim(int ranks) {
  return make_local_payloads(ranks, std::make_shared<SimNetwork>(Simulation{}));
}

constexpr PayloadEntry kAll[] = {
    {"local", make_local},
    {"sim", make_sim},
};

}  // namespace

std::span<PayloadEntry const> payloads() { return kAll; }

}  // namespace gpups::comm
