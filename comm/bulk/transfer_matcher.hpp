// SPDX-License-Identifier: Apache-2.0
// Matches sends and receives of ranks that are threads of one process, and orders their sums. It outlives the
// transports of all ranks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/wakeup.hpp"
#include "comm/bulk/bulk_transport.hpp"
#include "gpups/array.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

// A send.
struct PostedSend {
  Rank from, to;
  std::uint64_t tag;
  Transfer number;  // in the numbering of the sender
  Event ready;
  void const* data;
  Device device;
  std::size_t bytes;

  // kPosted: not matched yet. kCopyQueueing: the receiver is queueing its copy. kCopyQueued: the copy ends with event
  // `copied`. kClosed: copied, rejected or withdrawn.
  enum class State { kPosted, kCopyQueueing, kCopyQueued, kClosed };
  State state = State::kPosted;
  Event copied{};
  std::string rejection{};
};

// A receive.
struct PostedReceive {
  Stream stream;
  Transfer number;  // in the numbering of the receiver
  std::size_t bytes;
  BulkTransport::Allocate allocate;
};

// The sends and receives of all ranks of a process. Thread-safe. Each function is called by the thread of the rank that
// it is given.
class TransferMatcher {
 public:
  explicit TransferMatcher(int ranks) : ends_(static_cast<std::size_t>(ranks)) {}

  void offer(std::shared_ptr<PostedSend> const& offer);   // called by the sender; keeps the send until it has ended
  void arrive(std::shared_ptr<PostedSend> const& offer);  // announces the send to the receiver
  // Posts a receive of `rank`, which gets the send of `from` with the same tag.
  void receive(Rank rank, Rank from, std::uint64_t tag, PostedReceive receive);
  // Queues copies for matched transfers of the receiver `rank`, and checks which have ended. Returns the sends that are
  // done or were rejected, so that the caller informs their senders.
  struct MoveResult {
    bool any = false;
    std::vector<std::shared_ptr<PostedSend>> done, rejected;
  };
  MoveResult move(Rank rank);
  // Informs the sender that its send is done, or that its size differs from that of the receive.
  void sent(PostedSend const& offer);
  void rejected(PostedSend const& offer);
  // Throws the first PeerError of the rank, if there is one.
  void check(Rank rank);
  // See BulkTransport::done() and take_done().
  bool done(Rank rank, Transfer transfer);
  std::vector<Transfer> take_done(Rank rank);
  // Marks a transfer of the rank as done.
  void end(Rank rank, Transfer transfer);

  // The order of sums on a device fabric: the one in which the last rank becomes ready for them. One more rank is ready
  // for the sum with this tag.
  void ready_to_sum(std::uint64_t tag);
  // Returns the next sum for which all ranks are ready, once to each rank, or nothing.
  std::optional<std::uint64_t> next_sum(Rank rank);
  // This rank stops before its sums have ended. The first rank that has done so, or nothing.
  void abandon_sums(Rank rank);
  std::optional<Rank> abandoned_sums();

  // Withdraws the sends and receives of the rank, and blocks until the copies from and to it have ended.
  void close(Rank rank);
  void on_arrival(Rank rank, std::function<void()> wake) { endpoint(rank).wake.set(std::move(wake)); }

 private:
  // A send with its receive.
  struct MatchedTransfer {
    std::shared_ptr<PostedSend> offer;
    PostedReceive receive;
  };
  // The transfers of one rank.
  struct RankQueues {
    std::map<Transfer, std::shared_ptr<PostedSend>> posted_sends;  // sends of this rank
    std::map<std::pair<Rank, std::uint64_t>, std::shared_ptr<PostedSend>>
        arrived_sends;  // announced to this rank; by sender and tag
    std::map<std::pair<Rank, std::uint64_t>, PostedReceive> posted_receives;
    std::vector<MatchedTransfer> matched, copying;
    std::set<Transfer> done;
    std::size_t sums_begun = 0;
    std::optional<PeerError> error;
    Callback wake;
  };
  RankQueues& endpoint(Rank rank) { return ends_[number(rank)]; }
  void queue(MatchedTransfer& copy);
  void match(RankQueues& receiver, Rank from, std::uint64_t tag);

  std::mutex mutex_;  // protects all below; callbacks are called without it
  std::condition_variable queued_;
  std::vector<RankQueues> ends_;
  std::map<std::uint64_t, std::size_t> sums_ready_;  // by tag: the number of ranks, until all are
  std::deque<std::uint64_t> sums_;                   // tags in their order, from the sum sums_ended_ on
  std::size_t sums_ended_ = 0;
  std::optional<Rank> abandoned_by_;
};

}  // namespace gpups::comm
