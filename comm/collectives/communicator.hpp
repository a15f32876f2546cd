// SPDX-License-Identifier: Apache-2.0
// What one run of a collective talks through: every rank to every other, messages in the order in which they were sent.
//
// A collective is a coroutine over a communicator, the same on all ranks:
//   for (distance = 1; ...) {
//     communicator.send(partner, encode(mine));
//     mine = sum(mine, decode(co_await communicator.receive(partner, bytes_max)));
//   }
// Receiving begins at the call, not where it is awaited, so that several messages can be on their way at a time: the
// i-th that a rank receives from another is the i-th which that one sends to it. All of a communicator is used by the
// thread that turns the protocol, and all calls return at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/collectives/completion.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

class Communicator {
 public:
  Communicator(Rank me, int ranks, Stream& stream) : me_(me), ranks_(ranks), stream_(stream) {}
  virtual ~Communicator() = default;

  Rank me() const { return me_; }
  int ranks() const { return ranks_; }
  // The collective's work is queued on it: what is sent is what it then has written, what has come can be read on it.
  Stream& stream() const { return stream_; }
  // How many runs came before this one; the same on all ranks.
  virtual std::uint64_t sequence_number() const = 0;

  // Sends a message whose size the receiver learns from it, for receive(). `keep` stays alive until it has gone, and
  // the bytes must stay as they are until the result, if awaited, says so. Few bytes of the host travel in the header
  // and cost one message. There may be none.
  SendRequest send(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep) {
    return post_send(to, bytes, std::move(keep), SizeMode::kInHeader);
  }
  SendRequest send(Rank to, Bytes bytes) {
    auto const kept = std::make_shared<Bytes>(std::move(bytes));
    return send(to, kept->view(), kept);
  }
  // The next message of another rank, in memory of a device: the stream's, or the host for what only decides how to go
  // on. More than `bytes_max` bytes are a PeerError; they take memory only once the sender has offered just as many.
  [[nodiscard]] ReceiveRequest receive(Rank from, std::size_t bytes_max) {
    return receive(from, bytes_max, stream_.device());
  }
  [[nodiscard]] ReceiveRequest receive(Rank from, std::size_t bytes_max, Device device) {
    return ReceiveRequest(post_receive(from, bytes_max, device));
  }

  // The same for a message whose size both sides know: one that is large has no header. For receive_fixed().
  SendRequest send_fixed(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep) {
    return post_send(to, bytes, std::move(keep), SizeMode::kKnown);
  }
  // `keep` owns `to`, and stays alive while anything may write there, even where the run is given up.
  [[nodiscard]] Request receive_fixed(Rank from, View<std::uint8_t> to, std::shared_ptr<void const> keep) {
    return Request(post_receive_fixed(from, to, std::move(keep)));
  }

  // Whether fabric_allreduce() may be called: what connects the devices of the ranks adds up by itself, as NCCL does.
  // The same on all ranks.
  virtual bool can_allreduce() const = 0;
  // Of all ranks, `terms` (n) into `sums` (n), which may be the same memory: the same bits on all of them. Once in a
  // run. `keep` owns both, and stays alive as for receive_fixed().
  [[nodiscard]] Request fabric_allreduce(View<float const> terms, View<float> sums, std::shared_ptr<void const> keep) {
    return Request(post_allreduce(terms, sums, std::move(keep)));
  }

  // Until the work queued on the stream so far is done: the host may then read what it has written to host memory.
  [[nodiscard]] Request stream_done() { return Request(stream_completion()); }

  // For statistics: what is sent in so many bytes is `uncompressed_bytes` bytes where nothing is coded.
  virtual void count_compression(std::uint64_t /*plain*/, std::uint64_t /*sent*/) {}
  // In place of that, for a whole run: with nothing coded or left out this rank would send `uncompressed_bytes` bytes
  // in it. REQUIRES: called before anything is sent.
  virtual void set_uncompressed_bytes(std::uint64_t /*plain*/) {}

  // What another rank sent cannot be: throws PeerError. `what` goes on after "rank 3", as in "sent 5 rows, not 4".
  [[noreturn]] virtual void throw_peer_error(Rank peer, std::string const& what) const = 0;

 protected:
  enum class SizeMode { kInHeader, kKnown };

  // REQUIRES of all three: the other rank is not this one.
  virtual SendRequest post_send(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep,
                                SizeMode size) = 0;
  virtual std::shared_ptr<Completion> post_receive(Rank from, std::size_t bytes_max, Device device) = 0;
  virtual std::shared_ptr<Completion> post_receive_fixed(Rank from, View<std::uint8_t> to,
                                                         std::shared_ptr<void const> keep) = 0;
  virtual std::shared_ptr<Completion> post_allreduce(View<float const> terms, View<float> sums,
                                                     std::shared_ptr<void const> keep) = 0;
  virtual std::shared_ptr<Completion> stream_completion() = 0;  // null: there is nothing to wait for

 private:
  Rank me_;
  int ranks_;
  Stream& stream_;
};

// All other ranks of a communicator, in the order in which one should address them: its next first, so that not all
// ranks send to the same one at a time.
// me + 1, me + 2, ..., around the end.
inline std::vector<Rank> other_ranks(Communicator const& comm) {
  auto const ranks = static_cast<std::uint32_t>(comm.ranks());
  std::vector<Rank> others;
  for (std::uint32_t distance = 1; distance < ranks; ++distance) {
    others.push_back(Rank{(number(comm.me()) + distance) % ranks});
  }
  return others;
}

}  // namespace gpups::comm
