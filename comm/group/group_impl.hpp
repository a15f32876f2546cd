// SPDX-License-Identifier: Apache-2.0
// What is inside a Group: how one rank reaches the others.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/collectives/collective_channel.hpp"
#include "comm/group/collective_device.hpp"
#include "comm/group/inflight_collectives.hpp"
#include "comm/progress/progress_driver.hpp"
#include "comm/progress/progress_engine.hpp"
#include "comm/transport/transport.hpp"
#include "gpups/group.hpp"

namespace gpups {

struct Group::Impl {
  Impl() = default;
  Impl(Impl const&) = delete;
  Impl& operator=(Impl const&) = delete;
  virtual ~Impl() { end(); }
  // `lost` is called once, from any thread, when the first process of the group is lost; never where ranks are threads.
  virtual void on_lost(std::function<void(Rank rank, std::string const& why)>) {}

  // Group::wait_connect_devices(); threads reach each other's memory.
  virtual std::string wait_connect_devices(Device, ConnectOptions const&) { return {}; }

  std::unique_ptr<comm::Transport> transport;
  std::unique_ptr<comm::BulkTransport> bulk;
  std::unique_ptr<comm::ProgressDriver> driver;
  RankLocation location;
  int cores_shared_by = 1;   // ranks that run on the same cores
  int ranks_in_process = 1;  // ranks that are threads of this process
  bool simulated = false;    // its time is made up: what takes how long says nothing, and must decide nothing
  std::string broadcast_data;
  double wait_timeout_s = 300;  // of collectives
  bool had_store = false;       // a membership is for one Store
  comm::CollectiveDevice collective_device;
  comm::InflightCollectives inflight;  // collectives that this rank has started
  // Runs a rank's body so that it takes part in turns; plain call where there are none. For run_ranks().
  std::function<void(std::function<void()> const&)> run = [](auto const& body) { body(); };

  // What exchanges messages with the other ranks, and the collectives: made by the first call that needs them. From
  // then on transport and payload stay. Any thread.
  comm::ProgressEngine& engine();
  comm::CollectiveChannel& collectives();
  bool has_engine();

  // This rank needs nothing of the others any more: closes all channels and leaves; what it owes them, it gives them
  // first. Nothing where no call has needed the engine. Once.
  void end() noexcept;
  // The same where an exception has ended the rank's work: stops at once, and tells nobody.
  void abandon();

  comm::WaitLimit wait_limit() const { return {wait_timeout_s, "Group::set_wait_timeout_s()"}; }

 private:
  void make_engine();

  std::mutex making_;
  std::unique_ptr<comm::ProgressEngine> engine_;
  std::unique_ptr<comm::CollectiveChannel> collectives_;
};

}  // namespace gpups
