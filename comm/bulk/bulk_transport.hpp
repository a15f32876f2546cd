// SPDX-License-Identifier: Apache-2.0
// Transfers of bulk data between the memories of two ranks, whatever their devices. Both ranks know the size
// beforehand, and the receiver allocates the memory. If a device fabric connects the devices of all ranks, it can also
// sum over them.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/bulk/fabric_sum.hpp"
#include "comm/transport/transport.hpp"
#include "comm/ucx/active_messages.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// Identifies a transfer or an allreduce of this rank.
enum class Transfer : std::uint64_t {};

// The bulk transport of one rank.
class BulkTransport {
 public:
  virtual ~BulkTransport() = default;

  // Starts to send `bytes` bytes at `data` to `to`, once the work queued on `stream` so far is done; bytes may be 0.
  // The data must not change until done(); with more than kEagerBytesMax bytes that is after the receiver has called
  // receive(). A pair of ranks uses a tag for one transfer at a time. Any number of sends may be queued; those that
  // exceed the credits of a slow receiver wait here, in the order of the calls.
  virtual Transfer send(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes) = 0;

  // Starts to receive the transfer of `from` with this tag. If the sizes differ, progress() throws PeerError.
  // `allocate` returns the destination. progress() calls it once, after the sender has announced a transfer of exactly
  // this size, so that a header with a wrong size costs no memory. progress() throws what `allocate` throws. Work
  // queued on `stream` after done() sees the data.
  using Allocate = std::function<void*()>;
  virtual Transfer receive(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, Allocate allocate) = 0;
  // The same for existing memory.
  Transfer receive_into(Stream& stream, Rank from, std::uint64_t tag, void* data, std::size_t bytes) {
    return receive(stream, from, tag, bytes, [data] { return data; });
  }

  // Returns whether sum() may be called: a device fabric, such as NCCL, connects this device with the devices of all
  // ranks. Equal on all ranks.
  virtual bool can_allreduce(Device device) const = 0;
  // Starts an allreduce over all ranks, once the work queued on `stream` so far is done. All ranks get the same bits.
  // All ranks call it with the same tag, count and kind of number, else progress() throws PeerError; a tag is used for
  // one allreduce at a time. Work queued on `stream` after done() sees the sums. REQUIRES:
  // can_allreduce(stream.device()), arrays.count > 0.
  virtual Transfer sum(Stream& stream, std::uint64_t tag, FabricSum const& arrays) = 0;

  // Returns whether transfers between other ranks need progress() of this rank: it puts the operations of a device
  // fabric into one order.
  virtual bool serves_others() const { return false; }

  // Sends, receives and completes what is possible without blocking. Returns true if anything was done, or while a GPU
  // copies, since the end of a copy wakes no thread. Call it until the transfers are done.
  virtual bool progress() = 0;
  // Returns true once for each transfer when it has ended; its number is then forgotten.
  virtual bool done(Transfer transfer) = 0;
  // Returns the transfers that have ended since the last call, in the order of their numbers, and forgets them.
  virtual std::vector<Transfer> take_done() = 0;

  // Sets a function that is called, from any thread, when progress may be possible.
  virtual void on_arrival(std::function<void()> wake) = 0;
};

// Returns the error text of a transfer whose sender and receiver give different sizes.
inline std::string size_mismatch(Rank from, std::size_t sent, Rank to, std::size_t expected) {
  return fmt::format(
      "rank {} sends {} bytes to rank {}, which receives {} bytes (the sizes must be equal): run the same build and "
      "configuration on all ranks",
      number(from), sent, number(to), expected);
}

class DeviceFabric;
class TransferMatcher;

// Creates the transport of a rank that is a thread. The receiver copies from the memory of the sender, on its own
// stream, whatever the two devices are. matcher: that of all ranks. network: carries the announcements of transfers and
// the answers to them; null: they arrive at once. fabric: sums over the GPUs of all ranks; null: there is none.
std::unique_ptr<BulkTransport> make_local_bulk_transport(Rank rank, std::shared_ptr<TransferMatcher> matcher,
                                                         std::shared_ptr<LocalNetwork> network = nullptr,
                                                         std::shared_ptr<DeviceFabric> fabric = nullptr);
// Creates the transports of all ranks of a process, in rank order.
std::vector<std::unique_ptr<BulkTransport>> make_local_bulk_transports(int ranks,
                                                                       std::shared_ptr<LocalNetwork> network = nullptr);

// Creates the transport of a rank that is a process. Transfers of at most kEagerBytesMax bytes use the eager protocol,
// larger ones the rendezvous protocol. Memory of a GPU is sent through the fabric if both ranks have one, directly if
// UCX can access the GPU, and through staging otherwise. fabric: connects the GPUs of all ranks and sums over them;
// null: there is none.
std::unique_ptr<BulkTransport> make_ucx_bulk_transport(std::shared_ptr<ActiveMessages> ucx,
                                                       std::shared_ptr<DeviceFabric> fabric = nullptr);

}  // namespace gpups::comm
