// SPDX-License-Identifier: Apache-2.0
// All runs of collectives that a rank has to do with: its k-th is the k-th of all ranks, and several go on together.
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
#include "comm/collectives/collective_transport.hpp"
#include "comm/progress/channel.hpp"

namespace gpups::comm {

// A collective as the thread that begins it sees it.
struct CollectiveTask {
  virtual ~CollectiveTask() = default;
  virtual Signature signature() const = 0;
  // What a rank does. `self` is this object: who sends from its memory, or receives into it, keeps it.
  virtual CoTask<> run(Communicator& comm, std::shared_ptr<void const> self) = 0;

  Event input_ready{};  // what it reads is there
  Event ended{};        // what it has written is there; once `done`
  std::atomic<bool> done = false;
};

// Only the thread that turns uses this object.
class Collectives {
 public:
  // How many runs a rank may have begun that another has not.
  Collectives(Rank me, int ranks, CollectiveTransport& carrier, std::uint64_t ahead_max);

  // The stream is this object's own. REQUIRES: at least two ranks.
  void begin(std::shared_ptr<CollectiveTask> const& collective, Stream const& stream);
  // A header has come; returns how many bytes of it are a message. Throws PeerError where it cannot be right.
  std::size_t on_header(Rank from, std::uint64_t number, std::string_view header);
  // The rank begins no run any more. Throws PeerLost where this rank waits for it to begin one.
  void closed_by(Rank peer);

  // Goes on with what awaits work of the stream; true while there is any.
  bool progress();

  // No run that has begun here is under way.
  bool idle() const { return ops_in_flight_ == 0; }
  // The run that has been under way for longest here, and the ranks that it waits for; none where it is idle.
  PendingPeers pending_peers() const;

 private:
  struct Entry {
    std::shared_ptr<CollectiveOp> op{};
    std::shared_ptr<CollectiveTask> collective{};  // null until it has begun here
  };
  Entry& entry_of(std::uint64_t number);
  using OpMap = std::map<std::uint64_t, Entry>;
  void end(OpMap::iterator which);
  void end_finished();

  Rank me_;
  int ranks_;
  Stream const unknown_{Device::host(), 1};  // of a run that has not begun here
  CollectiveTransport& carrier_;
  std::uint64_t ahead_max_;
  std::uint64_t started_ = 0;
  std::size_t ops_in_flight_ = 0;         // that are under way
  std::size_t on_device_ = 0;             // of those, on a GPU
  std::vector<std::uint64_t> announced_;  // by rank: how many it has begun
  OpMap ops_;                             // by number; erased when they are over
};

}  // namespace gpups::comm
