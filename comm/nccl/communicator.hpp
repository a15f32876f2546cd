// SPDX-License-Identifier: Apache-2.0
// An NCCL communicator over the GPUs of all ranks: sends, receives and sums that are queued on a stream.
//
// Calls of NCCL may block until another rank takes part. Here only the constructor blocks: operations are polled, and
// end when a rank is lost (abort) or after a timeout. One thread at a time, except for abort().
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "comm/bulk/device_fabric.hpp"
#include "gpups/array.hpp"

namespace gpups::comm {

// Returns the id of a new communicator, as bytes. Rank 0 sends it to all ranks by other means.
std::string make_nccl_id();

// Non-blocking use of ncclComm_t.
class NcclCommunicator {
 public:
  // Blocks until all ranks have called it with the same id, and calls `progress` meanwhile: the id that this rank has
  // sent may not have left yet. Throws Error after `timeout_s`.
  NcclCommunicator(std::string const& id, Rank me, int ranks, Device device, std::function<void()> const& progress,
                   double timeout_s = 120);
  // Gives up pending operations, without waiting for other ranks.
  ~NcclCommunicator();
  NcclCommunicator(NcclCommunicator const&) = delete;
  NcclCommunicator& operator=(NcclCommunicator const&) = delete;

  Device device() const { return device_; }

  // Start to queue operations on `on`, a stream of the device. The peers of all transfers take part, and all ranks in
  // sums, in the same order on all ranks. REQUIRES of both: ready() has returned true since the last call.
  void move(Stream& on, std::span<DeviceFabric::P2pOp const> parts);
  // All ranks get the same bits.
  void sum(Stream& on, FabricSum const& arrays);

  // Returns whether the last operation has been queued. Throws Error if it has failed, or if other ranks have not taken
  // part for timeout_s.
  bool ready();
  // Throws Error if a queued operation has failed.
  void check();
  // The time by which operations that are queued now must end; check_time() throws Error if it is over.
  using Time = std::chrono::steady_clock::time_point;
  Time deadline() const;
  void check_time(Time end) const;
  // Ends queued operations soon, whether or not they are complete; later calls throw Error. Any thread.
  void abort() noexcept;
  // Returns whether abort() was called.
  bool is_given_up() const { return aborted_; }
  // Returns whether abort() has finished.
  bool is_aborted() const;

 private:
  template <class Call>
  void begin(char const* doing, Call call);
  void check_open(char const* doing) const;
  bool is_ready(char const* doing);
  void wait_ready(char const* doing, std::function<void()> const& progress);

  Device const device_;
  double const timeout_s_;
  char const* begun_ = nullptr;  // the operation that is being queued; null: none
  Time give_up_{};
  mutable std::mutex mutex_;  // protects native_: other threads call abort()
  void* native_ = nullptr;    // ncclComm_t
  std::atomic<bool> aborted_ = false;
};

// Creates a DeviceFabric over a communicator with a stream of its own. Blocks and throws as the constructor of
// NcclCommunicator.
std::unique_ptr<DeviceFabric> make_nccl_fabric(std::string const& id, Rank me, int ranks, Device device,
                                               std::function<void()> const& progress, double timeout_s);

}  // namespace gpups::comm
