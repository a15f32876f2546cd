// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/connect.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "comm/base/host_name.hpp"
#include "comm/base/peer_error.hpp"
#include "comm/base/serialization.hpp"
#include "gpups/error.hpp"
#include "kernels/base/build_config.hpp"
#include "kernels/runtime/cuda_runtime.hpp"
#if GPUPS_HAS_NCCL
#include "comm/nccl/communicator.hpp"
#endif

namespace gpups::comm {
namespace {

FabricOffer read_offer(Rank from, std::string const& bytes) try {
  Reader reader(bytes);
  std::string place(reader.get_text());
  FabricOffer offer{std::move(place), peer_text(reader.get_text())};
  reader.end();
  return offer;
} catch (SerializationError const& error) {
  throw PeerError(from, fmt::format("the description of the device of rank {} is invalid: {} (the device cannot be "
                                    "connected): run the same build on all ranks",
                                    number(from), error.what()));
}

std::vector<FabricOffer> wait_offers(ControlChannel& channel, FabricOffer const& mine) {
  Writer writer;
  writer.put_text(mine.place);
  writer.put_text(mine.why_not);
  std::vector<FabricOffer> offers;
  for (std::string const& bytes : channel.wait_allgather(writer.take())) {
    offers.push_back(read_offer(Rank{static_cast<std::uint32_t>(offers.size())}, bytes));
  }
  return offers;
}

// Calls the function and returns the text of the Error that it throws; empty if it throws none.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
    return {};
  } catch (Error const& error) {
    return error.what();
  }
}

std::string wait_first_error(ControlChannel& channel, std::string const& mine) {
  auto const all = channel.wait_allgather(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) return fmt::format("rank {}: {}", rank, peer_text(all[rank]));
  }
  return {};
}

// Creates NCCL fabrics.
class NcclFactory final : public FabricFactory {
 public:
  NcclFactory(ControlChannel& channel, Device device, bool enabled, double timeout_s)
      : channel_(channel), device_(device), enabled_(enabled), timeout_s_(timeout_s) {}

  FabricOffer offer() const override { return nccl_offer(device_, enabled_); }
#if GPUPS_HAS_NCCL
  std::string make_id() override { return make_nccl_id(); }
  std::shared_ptr<DeviceFabric> wait_make(std::string const& id, Rank me, int ranks) override {
    channel_.set_timeout(channel_.timeout_s() + timeout_s_);  // another rank may wait so long for NCCL
    return make_nccl_fabric(
        id, me, ranks, device_, [this] { (void)channel_.poll(); }, timeout_s_);
  }
#else  // never called: this rank offers no fabric
  std::string make_id() override { return {}; }
  std::shared_ptr<DeviceFabric> wait_make(std::string const&, Rank, int) override { return nullptr; }
#endif

 private:
  [[maybe_unused]] ControlChannel& channel_;
  Device device_;
  bool enabled_;
  [[maybe_unused]] double timeout_s_;
};

}  // namespace

std::string fabric_obstacle(std::span<FabricOffer const> offers) {
  std::map<std::string, std::size_t> ranks;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    auto const& [place, why_not] = offers[rank];
    if (place.empty()) return fmt::format("rank {} uses the host", rank);
    if (!why_not.empty()) return fmt::format("rank {}: {}", rank, why_not);
    auto const [other, fresh] = ranks.emplace(place, rank);
    if (!fresh) return fmt::format("ranks {} and {} share a device", other->second, rank);
  }
  return {};
}

NegotiatedFabric wait_negotiate_fabric(ControlChannel& channel, FabricFactory& factory) {
  auto const offers = wait_offers(channel, factory.offer());
  bool const any_device = std::any_of(offers.begin(), offers.end(), [](auto const& o) { return !o.place.empty(); });
  if (!any_device || offers.size() < 2) return {};
  NegotiatedFabric agreed;
  agreed.why_not = fabric_obstacle(offers);
  if (!agreed.why_not.empty()) return agreed;

  std::string id;
  agreed.why_not = wait_first_error(channel, channel.rank() == 0 ? error_of([&] { id = factory.make_id(); }) : "");
  if (!agreed.why_not.empty()) return agreed;
  id = channel.wait_broadcast(id);

  Rank const me{static_cast<std::uint32_t>(channel.rank())};
  agreed.why_not =
      wait_first_error(channel, error_of([&] { agreed.fabric = factory.wait_make(id, me, channel.size()); }));
  if (!agreed.why_not.empty()) agreed.fabric.reset();
  return agreed;
}

FabricOffer nccl_offer(Device device, bool enabled) {
  if (device.is_host()) return {};
  char const* const host = std::getenv("NCCL_HOSTID");  // if it is set, NCCL uses it as the id of the machine
  std::string const place = (host == nullptr ? machine_name() : host) + " " + cuda::pci_address(device.index);
  if (!GPUPS_HAS_NCCL) return {place, "its build has no NCCL"};
  return {place, enabled ? "" : "it is configured without NCCL"};
}

NegotiatedFabric wait_connect_nccl(ControlChannel& channel, Device device, bool enabled, double timeout_s) {
  NcclFactory factory(channel, device, enabled, timeout_s);
  return wait_negotiate_fabric(channel, factory);
}

}  // namespace gpups::comm
