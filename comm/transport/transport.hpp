// SPDX-License-Identifier: Apache-2.0
// Small host messages between ranks, of any size up to kMessageBytesMax, unknown to the receiver beforehand.
// Messages from one rank to another arrive once each and in order; between different pairs there is no order.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "gpups/types.hpp"

namespace gpups::comm {

inline constexpr std::size_t kMessageBytesMax = std::size_t{64} << 20;

struct TransportMessage {
  Rank from;
  std::string body;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Queues a message for `to`, which may be this rank. False: no room now, progress and try again; the queue holds
  // a bounded number of messages. Throws PeerLost when `to` has left. REQUIRES: to < size(), body <= kMessageBytesMax.
  virtual bool send(Rank to, std::string const& body) = 0;

  // The next message that has arrived, or nothing. Throws PeerLost when a rank has failed and all that it sent has been
  // received.
  virtual std::optional<TransportMessage> receive() = 0;

  // `wake` is called, from any thread, when a message may have arrived or room may have come. What comes over a network
  // may be noticed by receive() only: see WakeupEvent for how to sleep until there is something.
  virtual void on_arrival(std::function<void()> wake) = 0;

  // Leaves the group. Any thread.
  virtual void leave() = 0;
  // Leaves the group because of `at_fault`, this rank or one that it has lost: what the others' PeerLost will say. The
  // first call counts, but one after a regular end does too. Any thread.
  virtual void fail(Rank at_fault, std::string const& why) = 0;
};

}  // namespace gpups::comm
