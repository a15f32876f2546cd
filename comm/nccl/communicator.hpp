// SPDX-License-Identifier: Apache-2.0
// The GPUs of all ranks, as NCCL sees them: sends, receives and sums that are queued on a stream.
//
// NCCL's own calls can block for as long as another rank does not take part. Here none does so for ever: they are
// polled, and end where a rank is lost (abort) or too much time has passed. One thread at a time, but for abort().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "comm/payload/lane.hpp"
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

  // Queue on `on`, a stream of the device. All ranks that a part names take part, all ranks in sums; calls in the same
  // order on all of them.
  void move(Stream& on, std::span<Lane::Part const> parts);
  // values (n), this rank's, and then the sums, the same bits on all ranks. Integers are exact.
  void sum(Stream& on, View<std::int64_t> values);
  void sum(Stream& on, View<float> values);

  // Throws Error where something of what was queued has failed.
  void check();
  // What is queued ends soon, well or not; calls throw Error from now on. Any thread.
  void abort() noexcept;

 private:
  template <class Call>
  void run(char const* doing, Call call);
  void wait_ready(char const* doing);
  template <class T>
  void sum_of(Stream& on, View<T> values, int type);

  Device const device_;
  double const timeout_s_;
  std::mutex mutex_;        // of the communicator: abort() comes from other threads
  void* native_ = nullptr;  // ncclComm_t
  std::atomic<bool> aborted_ = false;
};

// A lane over a communicator, which orders its work on a stream of its own. Blocks and throws as its constructor does.
std::unique_ptr<Lane> make_nccl_lane(std::string const& id, Rank me, int ranks, Device device, double timeout_s);

}  // namespace gpups::comm
