// SPDX-License-Identifier: Apache-2.0
// What is inside a Group: how one rank reaches the others.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/group/begun_sums.hpp"
#include "comm/payload.hpp"
#include "comm/transport.hpp"
#include "comm/turner.hpp"
#include "gpups/group.hpp"

namespace gpups {

namespace comm {
class Reducer;
}

struct Group::Impl {
  virtual ~Impl() = default;
  // `lost` is called once, from any thread, when the first process of the group is lost; never where ranks are threads.
  virtual void on_lost(std::function<void(Rank rank, std::string const& why)>) {}

  // Group::wait_connect_devices(); threads reach each other's memory.
  virtual std::string wait_connect_devices(Device, ConnectOptions const&) { return {}; }

  std::unique_ptr<comm::Transport> transport;
  std::unique_ptr<comm::Payload> payload;
  std::unique_ptr<comm::Turner> turner;
  Place place;
  int cores_shared_by = 1;   // ranks that run on the same cores
  int ranks_of_process = 1;  // ranks that are threads of this process
  bool simulated = false;    // its time is made up: what takes how long says nothing, and must decide nothing
  std::string announcement;
  std::optional<Device> connected;   // the device that wait_connect_devices() was called for
  comm::Reducer* reducer = nullptr;  // sums over the ranks; there while a Store lives on this membership
  comm::BegunSums sums;              // of this rank
  // Runs a rank's body so that it takes part in turns; plain call where there are none. For run_ranks().
  std::function<void(std::function<void()> const&)> run = [](auto const& body) { body(); };
};

}  // namespace gpups
