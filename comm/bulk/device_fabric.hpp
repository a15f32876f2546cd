// SPDX-License-Identifier: Apache-2.0
// A way of its own for bulk data between devices of one kind, and for sums over them, such as NCCL between GPUs. It has
// no tags: what is sent and what is received must be named in the same order on both sides, sums in the same order on
// all ranks, and in batches that fit over all ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

class DeviceFabric {
 public:
  virtual ~DeviceFabric() = default;  // ends what is under way, without waiting for other ranks

  // Where data have to be to go this way.
  virtual Device device() const = 0;
  // The order of its work.
  virtual Stream& stream() = 0;

  // One transfer, as this rank sees it.
  struct P2pOp {
    Rank peer;
    bool sends;
    void* data;
    std::size_t bytes;
  };
  // The parts go on at the same time, behind the work queued on stream() so far. Each rank of a part calls this with
  // its side of it, and any two ranks call it for the batches that they share in the same order. The result, which
  // lives no longer than the fabric, says whether all have ended, or the fabric was given up and nothing of them goes
  // on.
  using IsDone = std::function<bool()>;
  virtual IsDone move(std::span<P2pOp const> operations) = 0;
  // The same for a sum over all ranks: of `terms` (n), this rank's, into `sums` (n), which may be the same memory. The
  // same bits on all ranks, which all call this for as many elements, in the same order beside what they move.
  virtual IsDone sum(View<float const> terms, View<float> sums) = 0;

  // Goes on with what was called for, without waiting for others: call it until all of that has ended. Throws Error
  // where something of it has failed, and will not end; but not for abort().
  virtual void check() = 0;
  // What is under way ends soon, well or not, and nothing is begun any more. Any thread. Who calls it knows why, and
  // says so.
  virtual void abort() noexcept = 0;
  // By abort(), or by a failure. Then what is over may have ended before its time.
  virtual bool is_given_up() const = 0;
};

}  // namespace gpups::comm
