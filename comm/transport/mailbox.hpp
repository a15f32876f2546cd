// SPDX-License-Identifier: Apache-2.0
// What has arrived for one rank and is not yet received, with bounded room for each sender.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/peer_lost.hpp"
#include "comm/progress/callback.hpp"
#include "comm/transport/transport.hpp"

namespace gpups::comm {

// Messages of one sender that may wait for one receiver; their bytes end at the size of the largest message.
inline constexpr std::size_t kQueuedMessagesMax = 256;

class Mailbox {
 public:
  explicit Mailbox(int ranks) : credits_(static_cast<std::size_t>(ranks)) {}

  // Takes room for a message of `from`, to be filled by deliver(). False: there is none now; `from` is told by the
  // result of receive() when there is. Throws PeerLost when the owner has left.
  bool reserve(Rank from, std::size_t bytes);
  void deliver(TransportMessage message);

  // `sender_with_credit`: a sender that was rejected and now has room.
  std::optional<TransportMessage> receive(std::optional<Rank>& sender_with_credit);

  // The owner leaves: what waits is dropped. False if this is known already; an error replaces a regular end.
  bool close(PeerLost const& error);
  bool closed();
  // Another rank has failed: receive() says so once all that it sent has been received.
  void lost(Rank reporter, PeerLost const& error);

  Callback wake;

 private:
  struct Credit {
    std::size_t messages = 0, bytes = 0;  // reserved
    std::size_t delivered = 0;            // messages that wait here
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
  std::vector<Failure> failures_;  // in the order in which they became known
};

}  // namespace gpups::comm
