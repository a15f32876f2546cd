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

struct Message {
  Rank from;
  std::string body;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Queues a message for `to`, which may be this rank. False: no room now, progress and try again; the queue holds
  // a bounded number of messages. Throws PeerError when `to` has left. REQUIRES: to < size(), body <= kMessageBytesMax.
  virtual bool send(Rank to, std::string const& body) = 0;

  // The next message that has arrived, or nothing. Throws PeerError when a rank has left in error and all that it
  // sent has been received.
  virtual std::optional<Message> receive() = 0;

  // `wake` is called, from any thread, when a message may have arrived or room may have come.
  virtual void on_arrival(std::function<void()> wake) = 0;

  // Leaves the group; `error` is empty for a regular end, else what the others' PeerError should say of this rank. The
  // first call counts, but an error after a regular end does too. Any thread.
  virtual void leave(std::string const& error) = 0;
};

}  // namespace gpups::comm
