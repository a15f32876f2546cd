// SPDX-License-Identifier: Apache-2.0
// All collectives of a rank. The k-th collective of one rank is the k-th of every other rank, and several may be in
// flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collectives/collective_op.hpp"
#include "comm/progress/channel.hpp"

namespace gpups::comm {

// A collective as the thread that starts it hands it over: arguments, results, and whether they are ready.
struct CollectiveTask {
  virtual ~CollectiveTask() = default;
  virtual Signature signature() const = 0;
  // Returns the coroutine of this rank. `self` is this object; sends and receives that use its memory keep `self`
  // alive.
  virtual CoTask<> run(Communicator& comm, std::shared_ptr<void const> self) = 0;

  Event input_ready{};  // the arguments are complete
  Event ended{};        // the results are complete; set before `done`
  std::atomic<bool> done = false;
};

// Only the thread that makes progress uses this object.
class Collectives {
 public:
  // ahead_max: the number of collectives that another rank may have started and this rank has not.
  Collectives(Rank me, int ranks, CollectiveTransport& transport, std::uint64_t ahead_max);

  // Starts a collective, whose work is queued on `stream`. REQUIRES: at least two ranks.
  void begin(std::shared_ptr<CollectiveTask> const& collective, Stream const& stream);
  // Handles a header of another rank and returns how many of its bytes are data of a message. Throws PeerError if the
  // header is invalid.
  std::size_t on_header(Rank from, std::uint64_t number, std::string_view header);
  // Handles that the rank will start no more collectives. Throws PeerLost if this rank waits for it to start one.
  void closed_by(Rank peer);

  // Resumes coroutines whose stream work is done. Returns whether any waited for stream work.
  bool progress();

  // Returns whether no collective that this rank has started is in flight.
  bool idle() const { return ops_in_flight_ == 0; }
  // Returns the ranks that the oldest collective in flight waits for; none if idle().
  PendingPeers pending_peers() const;
  // See Channel::unmatched_call().
  std::string unmatched_call(Rank peer) const;

 private:
  struct Entry {
    std::shared_ptr<CollectiveOp> op{};
    std::shared_ptr<CollectiveTask> collective{};  // null until this rank has started it
  };
  Entry& entry_of(std::uint64_t number);
  using OpMap = std::map<std::uint64_t, Entry>;
  void end(OpMap::iterator which);
  void end_finished();

  Rank me_;
  int ranks_;
  Stream const unknown_{Device::host(), 1};  // the stream of ops that this rank has not started
  CollectiveTransport& transport_;
  std::uint64_t ahead_max_;
  std::uint64_t started_ = 0;
  std::size_t ops_in_flight_ = 0;         // started by this rank and not ended
  std::size_t on_device_ = 0;             // of these, on a GPU
  std::vector<std::uint64_t> announced_;  // by rank: the number of collectives that it has started
  OpMap ops_;                             // by sequence number, until they end
};

}  // namespace gpups::comm
