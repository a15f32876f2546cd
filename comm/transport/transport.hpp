// SPDX-License-Identifier: Apache-2.0
// Small messages in host memory between ranks, of up to kMessageBytesMax bytes. Receivers need not know their sizes
// beforehand. Messages from one rank to another arrive once each and in order; between different pairs of ranks there
// is no order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::comm {

inline constexpr std::size_t kMessageBytesMax = std::size_t{64} << 20;

struct TransportMessage {
  Rank from;
  std::string body;
};

// The transport of one rank.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Queues a message for `to`, which may be this rank. Returns false if the bounded queue is full: call receive(), then
  // try again. Throws PeerLost if `to` has left. REQUIRES: to < size(), body <= kMessageBytesMax.
  virtual bool send(Rank to, std::string const& body) = 0;

  // Returns the next message that has arrived, or nothing. Makes progress. Throws PeerLost once a rank has failed and
  // all of its messages have been received.
  virtual std::optional<TransportMessage> receive() = 0;

  // Sets a function that is called, from any thread, when a message may have arrived or a queue may have room. Messages
  // from a network may be noticed by receive() only; see WakeupEvent for how to sleep until one arrives.
  virtual void on_arrival(std::function<void()> wake) = 0;

  // Leaves the group in order. Any thread.
  virtual void leave() = 0;
  // Leaves the group because of `at_fault`, which is this rank or a lost one; the PeerLost of other ranks has this
  // reason. Only the first call has an effect, except that an error after leave() is still sent. Any thread.
  virtual void fail(Rank at_fault, std::string const& why) = 0;
};

// The network between ranks of one process, in place of direct delivery: a simulated one that decides when messages
// arrive. Delivers messages and announcements of bulk data later.
class LocalNetwork {
 public:
  virtual ~LocalNetwork() = default;

  // Calls `arrive` once, later. Deliveries with kFifo between the same two ranks keep their order.
  enum class Order { kFifo, kFree };
  virtual void deliver_later(Order order, Rank from, Rank to, std::function<void()> arrive) = 0;

  // A rank checks for arrivals. If no thread advances the simulated time, this call does.
  virtual void poll() = 0;
};

// Creates the transports of ranks that are threads of one process, in rank order. Different threads may use and destroy
// them; a transport that is destroyed before leave() reports its rank as failed. network: carries the messages; null:
// they arrive at once.
std::vector<std::unique_ptr<Transport>> make_local_transports(int ranks,
                                                              std::shared_ptr<LocalNetwork> network = nullptr);

class ActiveMessages;
class FailureDetector;

// Creates the transport of a rank that is a process. Receivers return credits, so that the number of messages in flight
// is bounded. failure_detector: reports ranks that are lost; null: only ranks that leave in order are noticed.
std::unique_ptr<Transport> make_ucx_transport(std::shared_ptr<ActiveMessages> ucx,
                                              std::shared_ptr<FailureDetector> failure_detector);

}  // namespace gpups::comm
