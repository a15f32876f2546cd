// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/connect.hpp"

#include <cstdlib>

#include "comm/base/host_name.hpp"
#include "kernels/base/build_config.hpp"
#include "kernels/runtime/cuda_runtime.hpp"
#if GPUPS_HAS_NCCL
#include "comm/nccl/communicator.hpp"
#endif

namespace gpups::comm {
namespace {

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
