// SPDX-License-Identifier: Apache-2.0
// A device fabric: a direct connection between devices of one kind on all ranks, such as NCCL between GPUs, with
// transfers and sums. It has no tags: any two ranks must call it for their common transfers in the same order, all
// ranks for sums in the same order, and in batches that match on all ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "comm/bulk/fabric_sum.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// The fabric of one rank. Calls return without waiting for other ranks.
class DeviceFabric {
 public:
  virtual ~DeviceFabric() = default;  // gives up pending operations, without waiting for other ranks

  // The device in whose memory data must be.
  virtual Device device() const = 0;
  // The stream on which its work is queued.
  virtual Stream& stream() = 0;

  // One side of a transfer between two ranks.
  struct P2pOp {
    Rank peer;
    bool sends;
    void* data;
    std::size_t bytes;
  };
  // Queues a batch of transfers behind the work queued on stream() so far; they run concurrently. The other rank of
  // each transfer calls this with its side of it. The result may be called as long as the fabric exists; it returns
  // whether all transfers have ended, or the fabric was given up and has stopped them.
  using IsDone = std::function<bool()>;
  virtual IsDone move(std::span<P2pOp const> operations) = 0;
  // The same for an allreduce. All ranks get the same bits. All ranks call it with the same count and kind of number,
  // and in the same order relative to other sums and transfers.
  virtual IsDone sum(FabricSum const& arrays) = 0;

  // Makes progress without blocking: call it until all operations have ended. Throws Error if an operation has failed,
  // but not after abort().
  virtual void check() = 0;
  // Ends pending operations soon, whether or not they are complete, and rejects new ones. Any thread. The caller
  // reports the reason.
  virtual void abort() noexcept = 0;
  // Returns whether abort() was called or an operation has failed. Then operations that have ended may be incomplete.
  virtual bool is_given_up() const = 0;
};

}  // namespace gpups::comm
