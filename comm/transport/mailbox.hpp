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
#include "comm/transport.hpp"
#include "comm/waker.hpp"

namespace gpups::comm {

// Messages of one sender that may wait for one receiver; their bytes end at the size of the largest message.
inline constexpr std::size_t kQueuedMessagesMax = 256;

class Mailbox {
 public:
  explicit Mailbox(int ranks) : used_(static_cast<std::size_t>(ranks)) {}

  // Takes room for a message of `from`, to be filled by deliver(). False: there is none now; `from` is told by the
  // result of receive() when there is. Throws PeerLost when the owner has left.
  bool reserve(Rank from, std::size_t bytes);
  void deliver(Message message);

  // `room_for`: a sender that was refused and now has room.
  std::optional<Message> receive(std::optional<Rank>& room_for);

  // The owner leaves: what waits is dropped. False if this is known already; an error replaces a regular end.
  bool close(PeerLost const& error);
  bool closed();
  // Another rank has failed: receive() says so once all that it sent has been received.
  void lost(Rank teller, PeerLost const& error);

  Waker wake;

 private:
  struct Room {
    std::size_t messages = 0, bytes = 0;  // reserved
    std::size_t delivered = 0;            // messages that wait here
    bool refused = false;
  };
  struct Loss {
    Rank teller;
    PeerLost error;
  };

  std::mutex mutex_;
  std::deque<Message> messages_;
  std::vector<Room> used_;  // by sender
  std::optional<PeerLost> closed_;
  std::vector<Loss> losses_;  // in the order in which they became known
};

}  // namespace gpups::comm
