// SPDX-License-Identifier: Apache-2.0
// Gathers of small data over all ranks. Each belongs to a collective call of the Store, whose name and arguments all
// ranks compare.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/wire/store_messenger.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// A gather: `mine` of every rank. When `done` is set, `all` has the bytes of all ranks, in rank order.
struct GatherRequest {
  GatherPart mine{};           // ids number the gathers from 0, equal on all ranks
  std::optional<Rank> root{};  // the rank that gets the bytes; nullopt: all ranks
  std::vector<std::string> all;
  std::atomic<bool> done = false;
};

// The gathers of a rank. For the thread that makes progress. A request that was passed to begin() must not be used by
// other threads until its `done` is set.
class Gathers {
 public:
  Gathers(Rank me, int ranks, StoreMessenger& messenger);

  // Starts a gather. Does not wait for other ranks. Throws PeerError if another rank's part, which has arrived, belongs
  // to another call.
  void begin(std::shared_ptr<GatherRequest> const& request);
  // Adds the part of a rank to a gather. Throws PeerError if it is out of order, or if it belongs to another call than
  // the gather of this rank with the same number.
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
    std::map<Rank, GatherPart> parts;
  };
  PendingGather const* pending() const;
  void keep(Rank from, GatherPart part);
  void check_call(Rank from, GatherPart const& part, GatherRequest const& request) const;

  Rank me_;
  int ranks_;
  StoreMessenger& messenger_;
  std::map<std::uint64_t, PendingGather> gathers_;  // by number, until they are done
  std::vector<std::uint64_t> started_;              // by rank: number of gathers that it has started
};

}  // namespace gpups::cache
