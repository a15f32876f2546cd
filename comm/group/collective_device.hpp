// SPDX-License-Identifier: Apache-2.0
// The device that all collectives of a rank use: that of wait_connect_devices(), of the Store, or of the first
// collective, whichever comes first.
#pragma once

#include <optional>

#include "gpups/device.hpp"
#include "gpups/stream.hpp"

namespace gpups::comm {

// The device and the stream of the collectives of one rank. Used by the thread that starts collectives.
class CollectiveDevice {
 public:
  // Returns the device; nullopt before it is set.
  std::optional<Device> known() const { return device_; }

  // Checks that a Store may be created on the device, that wait_connect_devices() may be called, and that a collective
  // may start on the device. Each throws Error if another device is set, or if it is too late. call: the function that
  // the user called.
  void check_store(Device device) const;
  void check_connect() const;
  void check_collective(Device device, char const* call) const;
  void set_by_store(Device device) { set(device, Source::kStore); }
  void set_by_connect(Device device) { set(device, Source::kConnect); }
  void set_by_collective(Device device) { set(device, Source::kCollective); }

  // Returns the stream for the work of collectives; nullopt until one is set.
  std::optional<Stream>& stream() { return stream_; }

 private:
  enum class Source { kConnect, kStore, kCollective };
  void set(Device device, Source source);

  std::optional<Device> device_;
  Source source_{};
  std::optional<Stream> stream_;
};

}  // namespace gpups::comm
