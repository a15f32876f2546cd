// SPDX-License-Identifier: Apache-2.0
// The device that the collectives of a rank use, all of them: that of wait_connect_devices(), of the Store, or of the
// first collective, whichever comes first.
#pragma once

#include <optional>

#include "gpups/device.hpp"
#include "gpups/stream.hpp"

namespace gpups::comm {

// For the thread that begins collectives.
class CollectiveDevice {
 public:
  std::optional<Device> known() const { return device_; }

  // A Store is made on the device, wait_connect_devices() is called for it, or a collective begins there. Each throws
  // Error where another one is known. `call` is what the user has called.
  void check_store(Device device) const;
  void check_connect() const;
  void check_collective(Device device, char const* call) const;
  void set_by_store(Device device) { set(device, Source::kStore); }
  void set_by_connect(Device device) { set(device, Source::kConnect); }
  void set_by_collective(Device device) { set(device, Source::kCollective); }

  // For the work of collectives; null until one is given.
  std::optional<Stream>& stream() { return stream_; }

 private:
  enum class Source { kConnect, kStore, kCollective };
  void set(Device device, Source source);

  std::optional<Device> device_;
  Source source_{};
  std::optional<Stream> stream_;
};

}  // namespace gpups::comm
