// SPDX-License-Identifier: Apache-2.0
// The messages that have arrived for one rank and have not been received, with a bounded number for each sender.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/peer_error.hpp"
#include "comm/base/wakeup.hpp"
#include "comm/transport/transport.hpp"

namespace gpups::comm {

// The most messages of one sender that may be queued for one receiver. Their bytes are bounded by the size of the
// largest message.
inline constexpr std::size_t kQueuedMessagesMax = 256;

// The queue of one receiver. Thread-safe.
class Mailbox {
 public:
  explicit Mailbox(int ranks) : credits_(static_cast<std::size_t>(ranks)) {}

  // Reserves room for a message of `from`, which deliver() then adds. Returns false if there is no room; a later
  // receive() reports `from` when there is. Throws PeerLost if the receiver has left.
  bool reserve(Rank from, std::size_t bytes);
  void deliver(TransportMessage message);

  // Returns the next message, or nothing. sender_with_credit: set to the sender of the message if reserve() rejected it
  // before, since it now has room. Throws PeerLost, see lost().
  std::optional<TransportMessage> receive(std::optional<Rank>& sender_with_credit);

  // The receiver leaves, and its queued messages are dropped. Returns false if it has left before; an error replaces an
  // orderly leave.
  bool close(PeerLost const& error);
  bool closed();
  // Another rank has failed: receive() throws `error` once all messages of `reporter` have been received.
  void lost(Rank reporter, PeerLost const& error);

  Callback wake;

 private:
  struct Credit {
    std::size_t messages = 0, bytes = 0;  // reserved
    std::size_t delivered = 0;            // messages in the queue
    bool rejected = false;
  };
  struct Failure {
    Rank reporter;
    PeerLost error;
  };

  std::mutex mutex_;
  std::deque<TransportMessage> messages_;
  std::vector<Credit> credits_;  // by sender
  std::optional<PeerLost> closed_;
  std::vector<Failure> failures_;  // in the order of the reports
};

}  // namespace gpups::comm
