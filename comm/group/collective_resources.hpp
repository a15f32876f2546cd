// SPDX-License-Identifier: Apache-2.0
// What the collectives of a rank share: one device with a stream, and a few places.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gpups/device.hpp"
#include "gpups/stream.hpp"

namespace gpups::comm {

// The device and the stream of the collectives of one rank. The device is that of wait_connect_devices(), of the Store,
// or of the first collective, whichever comes first. Used by the thread that starts collectives.
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

struct CollectiveTask;

// The collectives that a rank has started. Each uses one of a few places until it has been waited for. An abandoned
// one, whose request was destroyed, uses its place until it has ended. Used by the thread that starts collectives.
class InflightCollectives {
 public:
  // Adds a collective and returns its owner: keep it until the collective has been waited for. Without its owner, a
  // collective is abandoned.
  std::shared_ptr<void const> add(std::shared_ptr<CollectiveTask> const& collective);
  void remove(CollectiveTask const& collective);  // after it has been waited for

  // Returns the number of places in use, after it has freed those of abandoned collectives that have ended.
  std::size_t count();
  // Returns the first abandoned collective; null if there is none.
  std::shared_ptr<CollectiveTask> abandoned() const;

 private:
  struct Inflight {
    std::weak_ptr<CollectiveTask> collective;
    std::weak_ptr<void const> owner;
  };
  std::vector<Inflight> all_;
};

}  // namespace gpups::comm
