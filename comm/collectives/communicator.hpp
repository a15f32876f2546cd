// SPDX-License-Identifier: Apache-2.0
// The communicator of one collective: sends messages between all ranks, in order for each pair of ranks.
//
// A collective is a coroutine over a communicator, the same on all ranks:
//   for (distance = 1; ...) {
//     communicator.send(partner, encode(mine));
//     mine = sum(mine, decode(co_await communicator.receive(partner, bytes_max)));
//   }
// The call of receive() posts the receive, not its co_await, so that several messages can be in flight. The i-th
// receive from a rank gets the i-th message of that rank. Only the thread that makes progress uses a communicator, and
// no call blocks.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/bulk/fabric_sum.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

using Bytes = Array<std::uint8_t>;

// Returns a view of the same memory as bytes.
template <class T>
View<std::uint8_t> bytes_of(View<T> values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.bytes(), values.device()};
}
template <class T>
View<std::uint8_t const> bytes_of(View<T const> values) {
  return {reinterpret_cast<std::uint8_t const*>(values.data()), values.bytes(), values.device()};
}

// The state of one send or receive, and the coroutine that awaits it.
struct Completion {
  bool done = false;
  std::coroutine_handle<> waiter{};
  Bytes bytes{};  // the received data, unless the receiver gave memory for it

  // Marks the send or receive as done and resumes the waiting coroutine.
  void end() {
    done = true;
    if (waiter) std::exchange(waiter, {}).resume();
  }
};

// Awaits a completion. At most one coroutine awaits a request; a request need not be awaited.
class RequestBase {
 public:
  // null: the send or receive is done.
  explicit RequestBase(std::shared_ptr<Completion> completion) : completion_(std::move(completion)) {}
  RequestBase(RequestBase&&) = default;
  RequestBase& operator=(RequestBase&&) = default;
  ~RequestBase() {
    if (completion_ != nullptr) completion_->waiter = {};  // an abandoned collective destroys its coroutines
  }

  bool await_ready() const noexcept { return completion_ == nullptr || completion_->done; }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { completion_->waiter = waiter; }

 protected:
  std::shared_ptr<Completion> completion_;
};

// Completes when the receiver has the data or the header has a copy of it. The sender's memory may then change.
class SendRequest : public RequestBase {
 public:
  using RequestBase::RequestBase;
  void await_resume() const noexcept {}
};

// Completes when the data is at its destination for work that is queued on the communicator's stream from then on.
class Request : public RequestBase {
 public:
  using RequestBase::RequestBase;
  void await_resume() const noexcept {}
};

// The same for a message whose size the receiver learns from its header. co_await returns the data.
class ReceiveRequest : public RequestBase {
 public:
  using RequestBase::RequestBase;
  Bytes await_resume() { return std::move(completion_->bytes); }
};

// The interface that a collective uses, for real ranks and for tests.
class Communicator {
 public:
  Communicator(Rank me, int ranks, Stream& stream) : me_(me), ranks_(ranks), stream_(stream) {}
  virtual ~Communicator() = default;

  Rank me() const { return me_; }
  int ranks() const { return ranks_; }
  // Returns the stream for the work of the collective. Data to send may still be written by work on it, and received
  // data may be read by work that is queued on it.
  Stream& stream() const { return stream_; }
  // Returns the number of earlier collectives of the group; equal on all ranks.
  virtual std::uint64_t sequence_number() const = 0;

  // Sends a message for receive(), whose size the receiver learns from its header. `keep` stays alive until the data is
  // sent, and the bytes must not change before the result completes. At most kInlineBytesMax bytes of host memory
  // travel inside the header. `bytes` may be empty.
  SendRequest send(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep) {
    return post_send(to, bytes, std::move(keep), SizeMode::kInHeader);
  }
  SendRequest send(Rank to, Bytes bytes) {
    auto const kept = std::make_shared<Bytes>(std::move(bytes));
    return send(to, kept->view(), kept);
  }
  // Receives the next message of another rank, in memory of `device`: by default that of the stream; use the host for
  // data by which the coroutine decides how to continue. Throws PeerError if the message has more than `bytes_max`
  // bytes. Memory is allocated when the sender has offered exactly as much data.
  [[nodiscard]] ReceiveRequest receive(Rank from, std::size_t bytes_max) {
    return receive(from, bytes_max, stream_.device());
  }
  [[nodiscard]] ReceiveRequest receive(Rank from, std::size_t bytes_max, Device device) {
    return ReceiveRequest(post_receive(from, bytes_max, device));
  }

  // Sends a message for receive_fixed(), whose size both ranks know. A large one has no header.
  SendRequest send_fixed(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep) {
    return post_send(to, bytes, std::move(keep), SizeMode::kKnown);
  }
  // Receives the next message into `to`. `keep` owns `to` and stays alive while anything may write there, also after
  // the collective was abandoned.
  [[nodiscard]] Request receive_fixed(Rank from, View<std::uint8_t> to, std::shared_ptr<void const> keep) {
    return Request(post_receive_fixed(from, to, std::move(keep)));
  }

  // Returns whether fabric_allreduce() may be called: whether a device fabric such as NCCL sums over the devices of the
  // ranks. Equal on all ranks.
  virtual bool can_allreduce() const = 0;
  // Sums arrays of all ranks, with equal bits on all ranks. At most once in a collective. `keep` owns them and stays
  // alive as for receive_fixed().
  [[nodiscard]] Request fabric_allreduce(FabricSum const& arrays, std::shared_ptr<void const> keep) {
    return Request(post_allreduce(arrays, std::move(keep)));
  }

  // Completes when the work that is queued on the stream so far is done. The host may then read the host memory that
  // this work has written.
  [[nodiscard]] Request stream_done() { return Request(stream_completion()); }

  // For statistics: `sent` bytes are sent, which are `uncompressed_bytes` without compression.
  virtual void count_compression(std::uint64_t /*uncompressed_bytes*/, std::uint64_t /*sent*/) {}
  // The same for a whole collective, in place of what count_compression() counts: without compression this rank would
  // send `uncompressed_bytes` in it. REQUIRES: nothing was sent yet.
  virtual void set_uncompressed_bytes(std::uint64_t /*uncompressed_bytes*/) {}

  // Throws PeerError for invalid data of another rank. `what` continues a sentence that begins with "rank 3", for
  // example "sent 5 rows, not 4".
  [[noreturn]] virtual void throw_peer_error(Rank peer, std::string const& what) const = 0;

 protected:
  enum class SizeMode { kInHeader, kKnown };

  // REQUIRES of the first three: the other rank is not this one.
  virtual SendRequest post_send(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep,
                                SizeMode size) = 0;
  virtual std::shared_ptr<Completion> post_receive(Rank from, std::size_t bytes_max, Device device) = 0;
  virtual std::shared_ptr<Completion> post_receive_fixed(Rank from, View<std::uint8_t> to,
                                                         std::shared_ptr<void const> keep) = 0;
  virtual std::shared_ptr<Completion> post_allreduce(FabricSum const& arrays, std::shared_ptr<void const> keep) = 0;
  virtual std::shared_ptr<Completion> stream_completion() = 0;  // null if there is nothing to wait for

 private:
  Rank me_;
  int ranks_;
  Stream& stream_;
};

// Returns all other ranks in the order in which a rank should address them: me + 1, me + 2, ..., around the end. So not
// all ranks send to the same rank at the same time.
inline std::vector<Rank> other_ranks(Communicator const& comm) {
  auto const ranks = static_cast<std::uint32_t>(comm.ranks());
  std::vector<Rank> others;
  for (std::uint32_t distance = 1; distance < ranks; ++distance) {
    others.push_back(Rank{(number(comm.me()) + distance) % ranks});
  }
  return others;
}

}  // namespace gpups::comm
