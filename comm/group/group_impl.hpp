// SPDX-License-Identifier: Apache-2.0
// The implementation of Group: how one rank reaches the others.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/collectives/collective_channel.hpp"
#include "comm/group/collective_resources.hpp"
#include "comm/progress/progress_driver.hpp"
#include "comm/progress/progress_engine.hpp"
#include "comm/transport/transport.hpp"
#include "gpups/group.hpp"

namespace gpups {

// The transports, the driver and the location of one rank. Derived classes know how the ranks were started.
struct GPUPS_HIDDEN Group::Impl {
  Impl() = default;
  Impl(Impl const&) = delete;
  Impl& operator=(Impl const&) = delete;
  virtual ~Impl() {
    if (engine_ != nullptr) end();
  }
  // Sets a function that is called once, from any thread, when the first process of the group is lost; never if the
  // ranks are threads.
  virtual void on_lost(std::function<void(Rank rank, std::string const& why)>) {}

  // See Group::wait_connect_devices(). Simulated ranks have no devices to connect.
  virtual std::string wait_connect_devices(Device, ConnectOptions const&) { return {}; }

  std::unique_ptr<comm::Transport> transport;
  std::unique_ptr<comm::BulkTransport> bulk;
  std::unique_ptr<comm::ProgressDriver> driver;
  RankLocation location;
  int cores_shared_by = 1;                 // ranks that run on the same cores
  int ranks_in_process = 1;                // ranks that are threads of this process
  std::vector<bool> shares_host;           // by rank: data travel through memory; empty: to no rank
  std::vector<std::uint32_t> hosts;        // by rank: ranks one after another on a host have equal ones; empty: all
  std::shared_ptr<char const> threads_of;  // the same object for these ranks; null for one rank in a process
  bool simulated = false;  // time is simulated: measured times mean nothing and must not decide anything
  std::string broadcast_data;
  double wait_timeout_s = 300;  // of collectives, in seconds
  bool had_store = false;       // a rank may create one Store
  comm::CollectiveDevice collective_device;
  comm::InflightCollectives inflight;  // collectives that this rank has started
  // Runs the body of a rank for run_ranks(): in a simulation, so that one rank runs at a time; else by a plain call.
  std::function<void(std::function<void()> const&)> run = [](auto const& body) { body(); };

  // Return the progress engine and the collectives, which the first call creates. After that the transports must not be
  // replaced. Any thread.
  comm::ProgressEngine& engine();
  comm::CollectiveChannel& collectives();
  // Returns whether the progress engine was created.
  bool has_engine();

  // Closes all channels after the last data was sent, and leaves the group, so that ranks that wait for this one get an
  // error. Later calls do nothing.
  void end() noexcept;
  // The same after an exception has ended the rank's work: stops at once and sends nothing.
  void abandon();

  // Returns whether data of the device travel to a rank through memory or a device fabric, not through a network.
  bool has_fast_link(Rank peer, Device device) const {
    return (!shares_host.empty() && shares_host[number(peer)]) || bulk->can_allreduce(device);
  }

  comm::WaitLimit wait_limit() const { return {wait_timeout_s, "Group::set_wait_timeout_s()"}; }

 private:
  void make_engine();

  std::mutex making_;
  std::unique_ptr<comm::ProgressEngine> engine_;
  std::unique_ptr<comm::CollectiveChannel> collectives_;
};

}  // namespace gpups

namespace gpups::comm {

struct JoinResult;
class UcxWorker;

// Returns the implementations of a group of `ranks`, by rank. network: null, or that of a simulation. Throws Error if
// the number is out of range.
std::vector<std::shared_ptr<Group::Impl>> make_thread_group(
    int ranks, std::shared_ptr<LocalNetwork> const& network,
    std::function<std::unique_ptr<ProgressDriver>(Rank)> const& make_driver);

// Connects this process to all ranks that have joined. Blocks. Throws Error, or PeerError if a rank is lost meanwhile.
std::shared_ptr<Group::Impl> make_process_group(Rank me, std::unique_ptr<UcxWorker> ucx, JoinResult joined);

}  // namespace gpups::comm
