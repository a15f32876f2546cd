// SPDX-License-Identifier: Apache-2.0
// Sends and takes messages and bulk data for the thread that turns the round: waits for room, keeps what is under way
// alive, and counts every byte that goes or comes.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cache/counters.hpp"
#include "cache/message.hpp"
#include "comm/payload.hpp"
#include "comm/transport.hpp"

namespace gpups::cache {

class Mail {
 public:
  Mail(comm::Transport& transport, comm::Payload& payload);

  void send(Rank to, Message const& message) { send(to, message, &Traffic::control, 0); }
  // The same where so many of its bytes are data of that kind.
  void send(Rank to, Message const& message, TrafficKind kind, std::size_t bytes_of_kind);
  // `keep` stays alive until the data has been taken, and then `then` runs in progress(); at once where there are no
  // bytes, and nothing is sent.
  void send_data(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes, TrafficKind kind,
                 std::shared_ptr<void const> keep, std::function<void()> then = {});
  // `where` gives the memory, when the sender's data of just this size is at hand; `then` runs in progress() when the
  // data is there; at once where there are no bytes.
  void take_data(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, comm::Payload::Where where,
                 std::function<void()> then);

  // Whether sum_data() may be called for memory of the device.
  bool adds(Device device) const { return payload_.adds(device); }
  // Adds up `terms` (n) of all ranks into `sums` (n), which `keep` owns; `then` runs in progress() when they are there;
  // at once for none. What travels is not seen: each rank counts what a ring would send to the next one.
  void sum_data(Stream& stream, std::uint64_t tag, View<float const> terms, View<float> sums, TrafficKind kind,
                std::shared_ptr<void const> keep, std::function<void()> then);

  struct Received {
    Rank from;
    Message message;
  };
  std::optional<Received> receive();
  // So many bytes of the message that has come last from there were data of that kind.
  void received_within(Rank from, TrafficKind kind, std::size_t bytes) { counters_.received_within(from, kind, bytes); }
  // Sends what waits for room and ends transfers; true if anything moved.
  bool progress();
  // Nothing is waiting to be sent or taken.
  bool idle() const;

  // What was sent in so many bytes is `plain` bytes where nothing is coded or held back; see Stats::spared.
  void count_coding(TrafficKind kind, std::uint64_t plain, std::uint64_t sent) {
    if (plain > sent) counters_.spared(kind, plain - sent);
  }
  // So many bytes were sent of what has been counted as held back.
  void count_late(TrafficKind kind, std::uint64_t sent) { counters_.not_spared(kind, sent); }
  // Any thread.
  Counters const& counters() const { return counters_; }

 private:
  struct Pending {
    std::shared_ptr<void const> keep;
    std::function<void()> then;
  };

  comm::Transport& transport_;
  comm::Payload& payload_;
  // By rank: what the transport had no room for. Lists, since most are empty: a deque takes memory even then.
  std::vector<std::list<std::string>> outbox_;
  std::unordered_map<comm::Transfer, Pending> pending_;
  Counters counters_;
};

}  // namespace gpups::cache
