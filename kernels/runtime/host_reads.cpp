// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/host_reads.hpp"

#include <cstring>

namespace gpups::kernels {

void HostReads::wait() {
  if (all_.empty()) return;
  Device const device = stream_.device(), host = Device::host();
  if (device.is_host()) {
    for (auto const& read : all_) memory::copy(stream_, read.to, host, read.from, device, read.bytes);
    stream_.wait();
    all_.clear();
    return;
  }
  if (all_.size() == 1) {
    memory::read_back(stream_, all_.front().to, all_.front().from, device, all_.front().bytes);
    all_.clear();
    return;
  }
  std::size_t bytes = 0;
  for (auto const& read : all_) bytes += read.bytes;
  Array<std::byte> const there(device, bytes);
  std::vector<std::byte> here(bytes);
  std::byte* to = there.data();
  for (auto const& read : all_) {
    memory::copy(stream_, to, device, read.from, device, read.bytes);
    to += read.bytes;
  }
  memory::read_back(stream_, here.data(), there.data(), device, bytes);
  std::byte const* from = here.data();
  for (auto const& read : all_) {
    std::memcpy(read.to, from, read.bytes);
    from += read.bytes;
  }
  all_.clear();
}

}  // namespace gpups::kernels
