// SPDX-License-Identifier: Apache-2.0
// Bulk data between the devices of two ranks: both sides know the size from a header, nothing is copied on the way in.
// And sums over all ranks, where something adds up between their devices.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// What is larger waits with its sender until the receiver wants it.
inline constexpr std::size_t kEagerBytesMax = std::size_t{64} << 10;

// Number of a transfer or sum of this rank, for done().
enum class Transfer : std::uint64_t {};

class BulkTransport {
 public:
  virtual ~BulkTransport() = default;

  // Offers `bytes` at `data` to `to` under `tag`, once the work queued on `stream` so far is done. The data must stay
  // as it is until done(); what has more than kEagerBytesMax bytes is not done before it is wanted. A pair of ranks
  // uses a tag for one transfer at a time. bytes may be 0. A receiver that is slow bounds what lies in its own memory,
  // not how much is sent; but it is offered the next some thousands of transfers only, in the order of these calls.
  virtual Transfer send(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes) = 0;

  // Takes what `from` sends under `tag`; the sizes must agree, else progress() throws PeerError. `allocate` says where
  // the data goes: progress() calls it, once, when the sender has offered just these bytes, so that a header which
  // claims too much costs no memory. What it throws, progress() throws. Work queued on `stream` after done() sees the
  // data.
  using Allocate = std::function<void*()>;
  virtual Transfer receive(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, Allocate allocate) = 0;
  // The same for memory that is there already.
  Transfer receive_into(Stream& stream, Rank from, std::uint64_t tag, void* data, std::size_t bytes) {
    return receive(stream, from, tag, bytes, [data] { return data; });
  }

  // Whether sum() may be called: what connects memory of this device with that of all other ranks adds up by itself, as
  // NCCL does. The same on all ranks.
  virtual bool can_allreduce(Device device) const = 0;
  // Adds up `terms` (n) of all ranks, once the work queued on `stream` so far is done, into `sums` (n), which may be
  // the same memory: the same bits on all ranks. All of them call it under the tag, for as many elements, else
  // progress() throws PeerError; a tag is used for one sum at a time. Work queued on `stream` after done() sees the
  // sums. REQUIRES: adds(stream.device()), n > 0.
  virtual Transfer sum(Stream& stream, std::uint64_t tag, View<float const> terms, View<float> sums) = 0;

  // Moves what can be moved now; true if anything was, or is being copied by a GPU, which wakes nobody when it is over.
  // Call it until what is awaited is done.
  virtual bool progress() = 0;
  // True once for each transfer when it has ended; the number is then forgotten.
  virtual bool done(Transfer transfer) = 0;
  // All that have ended and are not forgotten, in the order of their numbers; they then are.
  virtual std::vector<Transfer> take_done() = 0;

  // `wake` is called, from any thread, when progress may be possible.
  virtual void on_arrival(std::function<void()> wake) = 0;
};

// Returns the error text of a transfer whose sender and receiver give different sizes.
inline std::string size_mismatch(Rank from, std::size_t sent, Rank to, std::size_t expected) {
  return fmt::format(
      "rank {} sends {} bytes to rank {}, which expects {} (ranks that do not agree on sizes cannot go "
      "on): run the same build and configuration on all ranks",
      number(from), sent, number(to), expected);
}

}  // namespace gpups::comm
