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

#include "comm/bulk/bulk_transport.hpp"
#include "comm/progress/callback.hpp"
#include "gpups/array.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

// What a sender offers.
struct PostedSend {
  Rank from, to;
  std::uint64_t tag;
  Transfer number;  // the sender's
  Event ready;
  void const* data;
  Device device;
  std::size_t bytes;

  // kOpen: the data is there. kQueueing: the receiver is queueing its copy. kQueued: it is over at `copied`.
  enum class State { kPosted, kCopyQueueing, kCopyQueued, kClosed };
  State state = State::kPosted;
  Event copied{};
  std::string rejection{};
};

// What a receiver wants.
struct PostedReceive {
  Stream stream;
  Transfer number;  // the receiver's
  std::size_t bytes;
  BulkTransport::Allocate allocate;
};

// The meeting point. Each method is for the thread of the rank it names.
class TransferMatcher {
 public:
  explicit TransferMatcher(int ranks) : ends_(static_cast<std::size_t>(ranks)) {}

  void offer(std::shared_ptr<PostedSend> const& offer);   // kept until it is closed
  void arrive(std::shared_ptr<PostedSend> const& offer);  // the receiver learns of it
  void receive(Rank rank, Rank from, std::uint64_t tag, PostedReceive receive);
  // Queues copies and looks which are over; their offers, for the senders to be told.
  struct MoveResult {
    bool any = false;
    std::vector<std::shared_ptr<PostedSend>> over, rejected;
  };
  MoveResult move(Rank rank);
  // The sender learns that its offer was taken, or that its size was not what the receiver expects.
  void sent(PostedSend const& offer);
  void rejected(PostedSend const& offer);
  // Throws what has gone wrong for the rank.
  void check(Rank rank);
  bool done(Rank rank, Transfer transfer);
  std::vector<Transfer> take_done(Rank rank);
  // Withdraws what the rank offers and wants, and waits for the copies that it is part of.
  void close(Rank rank);
  void on_arrival(Rank rank, std::function<void()> wake) { endpoint(rank).wake.set(std::move(wake)); }

 private:
  struct MatchedTransfer {
    std::shared_ptr<PostedSend> offer;
    PostedReceive receive;
  };
  // One rank's side of its transfers.
  struct RankQueues {
    std::map<Transfer, std::shared_ptr<PostedSend>> posted_sends;  // as a sender
    std::map<std::pair<Rank, std::uint64_t>, std::shared_ptr<PostedSend>>
        arrived_sends;  // as a receiver, by sender and tag
    std::map<std::pair<Rank, std::uint64_t>, PostedReceive> posted_receives;
    std::vector<MatchedTransfer> matched, copying;
    std::set<Transfer> done;
    std::optional<PeerError> error;
    Callback wake;
  };
  RankQueues& endpoint(Rank rank) { return ends_[number(rank)]; }
  void queue(MatchedTransfer& copy);
  void match(RankQueues& receiver, Rank from, std::uint64_t tag);

  std::mutex mutex_;  // of all below, except that wakers are called without it
  std::condition_variable queued_;
  std::vector<RankQueues> ends_;
};

}  // namespace gpups::comm
