// SPDX-License-Identifier: Apache-2.0
// Gathers: each rank sends bytes to each other one, and gets those that all ranks have for it. Each gather belongs to a
// collective call of the Store, whose name and arguments all ranks compare.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache/wire/store_messenger.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// A gather. When `done` is set, `all` has the bytes that each rank has for this rank, in rank order.
struct GatherRequest {
  std::uint64_t id = 0;           // numbers the gathers from 0, equal on all ranks
  std::string call;               // see GatherPart
  std::vector<std::string> mine;  // the bytes for each rank; or one element, the bytes for all ranks
  std::vector<std::string> all;
  std::atomic<bool> done = false;

  std::string const& bytes_for(Rank rank) const { return mine[mine.size() == 1 ? 0 : number(rank)]; }
};

// The gathers of a rank. For the thread that makes progress. A request that was passed to begin() must not be used by
// other threads until its `done` is set.
class Gathers {
 public:
  Gathers(Rank me, int ranks, StoreMessenger& messenger);

  // Starts a gather. Does not wait for other ranks. Throws PeerError if another rank's part, which has arrived, belongs
  // to another call.
  void begin(std::shared_ptr<GatherRequest> const& request);
  // Adds bytes of a rank to a gather. Throws PeerError if they are out of order or too many, or if they belong to
  // another call than the gather of this rank with the same number.
  void on_message(Rank from, GatherPart const& part);

  // Returns the ranks whose bytes a gather of this rank waits for, and its call; nothing if there is none.
  std::vector<Rank> pending_peers() const;
  std::string pending_call() const;
  // Returns the call of `peer` that this rank has not made yet; empty if there is none.
  std::string unmatched_call(Rank peer) const;
  // Returns true if all gathers of this rank are done.
  bool idle() const { return pending() == nullptr; }

 private:
  struct PendingGather {
    std::shared_ptr<GatherRequest> request;  // null until this rank starts the gather
    std::map<Rank, GatherPart> parts;        // the bytes that have arrived
    std::size_t complete = 0;                // number of ranks whose bytes have all arrived
  };
  PendingGather const* pending() const;
  void send_part(Rank to, GatherRequest const& request, std::size_t first);
  void send_rest(Rank to, GatherRequest const& request);
  void keep(Rank from, GatherPart part);
  void check_call(Rank from, GatherPart const& part, GatherRequest const& request) const;

  Rank me_;
  int ranks_;
  StoreMessenger& messenger_;
  std::map<std::uint64_t, PendingGather> gathers_;  // by number, until they are done
  std::vector<std::uint64_t> started_;              // by rank: number of gathers that it has started
};

}  // namespace gpups::cache
