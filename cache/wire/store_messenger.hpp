// SPDX-License-Identifier: Apache-2.0
// Sends and receives the messages and the bulk data of the store's channel.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "cache/wire/message.hpp"
#include "comm/progress/messenger.hpp"

namespace gpups::cache {

using comm::TrafficKind;

// Calls comm::Messenger, which documents each function, for the store's channel. For the thread that makes progress.
class StoreMessenger {
 public:
  // stream: for the work of the protocol on a device. It must outlive this object.
  StoreMessenger(comm::Messenger& messenger, Stream const& stream) : messenger_(messenger), stream_(stream) {}

  void send(Rank to, Message const& message) { send(to, message, &Traffic::control, 0); }
  // The same for a message of which `bytes_of_kind` bytes count as data of that kind, and the rest as control.
  void send(Rank to, Message const& message, TrafficKind kind, std::size_t bytes_of_kind) {
    messenger_.send(kChannel, to, encode(message), kind, bytes_of_kind);
  }
  void send_data(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes, TrafficKind kind,
                 std::shared_ptr<void const> keep, std::function<void()> then = {}) {
    messenger_.send_data(kChannel, stream, to, tag, data, bytes, kind, std::move(keep), std::move(then));
  }
  // Calls `allocate` and `then` in the memory scope of the protocol's stream.
  void receive_data(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes,
                    comm::BulkTransport::Allocate allocate, std::function<void()> then);

  void count_compression(TrafficKind kind, std::uint64_t plain, std::uint64_t sent) {
    messenger_.count_compression(kind, plain, sent);
  }
  void count_flushed(TrafficKind kind, std::uint64_t sent) { messenger_.count_flushed(kind, sent); }

 private:
  static constexpr comm::ChannelId kChannel = comm::ChannelId::kStore;
  comm::Messenger& messenger_;
  Stream const& stream_;
};

// Decodes and checks a message of the channel. Throws PeerError if it is invalid.
Message read_message(Rank from, std::string_view body);

// Throws PeerError: "rank 3 {what} ...".
[[noreturn]] void throw_peer_error(Rank peer, Rank me, std::string const& what);

// Returns a function that calls `then` at its `count`-th call. If `count` is 0, calls `then` immediately. One thread at
// a time.
inline std::function<void()> countdown_callback(std::size_t count, std::function<void()> then) {
  if (count == 0) {
    then();
    return [] {};
  }
  return [left = std::make_shared<std::size_t>(count), then = std::move(then)] {
    if (--*left == 0) then();
  };
}

}  // namespace gpups::cache
