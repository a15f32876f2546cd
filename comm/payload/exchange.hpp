// SPDX-License-Identifier: Apache-2.0
// Where the sending and receiving ends of the transfers of one process meet. It outlives each of the ends.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/payload.hpp"
#include "comm/waker.hpp"
#include "gpups/array.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

// What a sender offers.
struct Offer {
  Rank from, to;
  std::uint64_t tag;
  Transfer number;  // the sender's
  Event ready;
  void const* data;
  Device device;
  std::size_t bytes;

  // kOpen: the data is there. kQueueing: the receiver is queueing its copy. kQueued: it is over at `copied`.
  enum class State { kOpen, kQueueing, kQueued, kClosed };
  State state = State::kOpen;
  Event copied{};
  std::string refusal{};
};

// What a receiver wants.
struct Want {
  Stream stream;
  Transfer number;  // the receiver's
  std::size_t bytes;
  Payload::Where where;
};

// The meeting point. Each method is for the thread of the rank it names.
class Exchange {
 public:
  explicit Exchange(int ranks) : ends_(static_cast<std::size_t>(ranks)) {}

  void offer(std::shared_ptr<Offer> const& offer);   // kept until it is closed
  void arrive(std::shared_ptr<Offer> const& offer);  // the receiver learns of it
  void want(Rank rank, Rank from, std::uint64_t tag, Want want);
  // Queues copies and looks which are over; their offers, for the senders to be told.
  struct Moved {
    bool any = false;
    std::vector<std::shared_ptr<Offer>> over, refused;
  };
  Moved move(Rank rank);
  // The sender learns that its offer was taken, or that its size was not what the receiver expects.
  void sent(Offer const& offer);
  void refused(Offer const& offer);
  // Throws what has gone wrong for the rank.
  void check(Rank rank);
  bool done(Rank rank, Transfer transfer);
  std::vector<Transfer> take_done(Rank rank);
  // Withdraws what the rank offers and wants, and waits for the copies that it is part of.
  void close(Rank rank);
  void on_arrival(Rank rank, std::function<void()> wake) { end(rank).wake.set(std::move(wake)); }

 private:
  struct Copy {
    std::shared_ptr<Offer> offer;
    Want want;
  };
  // One rank's side of its transfers.
  struct End {
    std::map<Transfer, std::shared_ptr<Offer>> offers;                         // as a sender
    std::map<std::pair<Rank, std::uint64_t>, std::shared_ptr<Offer>> arrived;  // as a receiver, by sender and tag
    std::map<std::pair<Rank, std::uint64_t>, Want> wants;
    std::vector<Copy> matched, copying;
    std::set<Transfer> done;
    std::optional<PeerError> error;
    Waker wake;
  };
  End& end(Rank rank) { return ends_[number(rank)]; }
  void queue(Copy& copy);
  void match(End& receiver, Rank from, std::uint64_t tag);

  std::mutex mutex_;  // of all below, except that wakers are called without it
  std::condition_variable queued_;
  std::vector<End> ends_;
};

}  // namespace gpups::comm
