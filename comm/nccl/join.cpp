// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/join.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <map>

#include "comm/host_name.hpp"
#include "comm/peer_text.hpp"
#include "gpups/error.hpp"
#include "kernels/build_config.hpp"
#include "kernels/cuda_runtime.hpp"
#if GPUPS_HAS_NCCL
#include "comm/nccl/communicator.hpp"
#endif

namespace gpups::comm {
namespace {

constexpr char const* kNone = "none";

}  // namespace

std::string device_on_network(Device device) {
  if (device.is_host() || !GPUPS_HAS_NCCL) return kNone;
  char const* const host = std::getenv("NCCL_HOSTID");  // what NCCL tells machines apart by, where it is set
  return (host == nullptr ? machine_name() : host) + " " + cuda::pci_address(device.index);
}

std::string no_nccl_between(std::vector<std::string> const& devices) {
  std::map<std::string, std::size_t> ranks;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (devices[rank] == kNone) return fmt::format("rank {} is on the host, or its build has no NCCL", rank);
    auto const [other, fresh] = ranks.emplace(devices[rank], rank);
    if (!fresh) return fmt::format("ranks {} and {} share a GPU, which NCCL refuses", other->second, rank);
  }
  return devices.size() < 2 ? "there is one rank" : "";
}

NcclJoined wait_nccl_lane(Talk& talk, Device device) {
  std::string const why_not = no_nccl_between(talk.wait_say_to_all(device_on_network(device)));
  if (!why_not.empty()) return {nullptr, why_not};
#if GPUPS_HAS_NCCL
  // Where it fails on one rank nobody uses it.
  auto const attempt = [](auto const& call) {
    try {
      call();
      return std::string();
    } catch (Error const& error) {
      return std::string(error.what());
    }
  };
  auto const any = [&](std::string const& mine) {
    auto const all = talk.wait_say_to_all(mine);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (!all[rank].empty()) return fmt::format("rank {}: {}", rank, peer_text(all[rank]));
    }
    return std::string();
  };
  std::string id;
  std::string const no_id = talk.wait_tell(talk.rank() == 0 ? attempt([&] { id = make_nccl_id(); }) : std::string());
  if (!no_id.empty()) return {nullptr, no_id};
  id = talk.wait_tell(id);
  NcclJoined joined;
  joined.why_not = any(attempt(
      [&] { joined.lane = make_nccl_lane(id, Rank{static_cast<std::uint32_t>(talk.rank())}, talk.size(), device); }));
  if (!joined.why_not.empty()) joined.lane.reset();
  return joined;
#else
  return {nullptr, why_not};
#endif
}

}  // namespace gpups::comm
