// SPDX-License-Identifier: Apache-2.0
// The GPUs of all ranks, as NCCL sees them: sends, receives and sums that are queued on a stream.
//
// NCCL's own calls may not end before another rank takes part. Here none blocks but the constructor: they are polled,
// and end where a rank is lost (abort) or too much time has passed. One thread at a time, but for abort().
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "comm/bulk/device_fabric.hpp"
#include "gpups/array.hpp"

namespace gpups::comm {

// What rank 0 makes, and hands to all others by other means, before a communicator is made: bytes.
std::string make_nccl_id();

class NcclCommunicator {
 public:
  // Blocks until all ranks call it with the same id; `timeout_s` at most, and then throws Error.
  NcclCommunicator(std::string const& id, Rank me, int ranks, Device device, double timeout_s = 120);
  // Waits for no other rank: what is under way is given up.
  ~NcclCommunicator();
  NcclCommunicator(NcclCommunicator const&) = delete;
  NcclCommunicator& operator=(NcclCommunicator const&) = delete;

  Device device() const { return device_; }

  // Begin to queue on `on`, a stream of the device. All ranks that a part names take part, all ranks in sums; calls in
  // the same order on all of them. REQUIRES of both: ready() since the last one.
  void move(Stream& on, std::span<DeviceFabric::P2pOp const> parts);
  // terms (n), this rank's; sums (n), which may be the same memory: the same bits on all ranks.
  void sum(Stream& on, View<float const> terms, View<float> sums);

  // Whether what was begun has been queued. Throws Error where it has failed, or others have let this rank wait for
  // timeout_s.
  bool ready();
  // Throws Error where something of what was queued has failed.
  void check();
  // When what is queued now should have ended, and Error where that is past.
  using Time = std::chrono::steady_clock::time_point;
  Time deadline() const;
  void check_time(Time end) const;
  // What is queued ends soon, well or not; calls throw Error from now on. Any thread.
  void abort() noexcept;
  bool is_given_up() const { return aborted_; }
  // abort() is over.
  bool is_aborted() const;

 private:
  template <class Call>
  void begin(char const* doing, Call call);
  void check_open(char const* doing) const;
  bool is_ready(char const* doing);
  void wait_ready(char const* doing);

  Device const device_;
  double const timeout_s_;
  char const* begun_ = nullptr;  // what is being queued; null: nothing
  Time give_up_{};
  mutable std::mutex mutex_;  // of the communicator: abort() comes from other threads
  void* native_ = nullptr;    // ncclComm_t
  std::atomic<bool> aborted_ = false;
};

// A fabric over a communicator, which orders its work on a stream of its own. Blocks and throws as its constructor
// does.
std::unique_ptr<DeviceFabric> make_nccl_fabric(std::string const& id, Rank me, int ranks, Device device,
                                               double timeout_s);

}  // namespace gpups::comm
