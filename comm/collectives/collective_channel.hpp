// SPDX-License-Identifier: Apache-2.0
// The channel of the collectives: connects the collectives of this rank to its messenger.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collectives/collective_op.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/collectives/selection/selector.hpp"
#include "comm/progress/progress_engine.hpp"

namespace gpups::comm {

// Starts the collectives of this rank, makes progress for them, and sends their messages.
class CollectiveChannel final : public Channel, private CollectiveTransport {
 public:
  // Opens the channel. ahead_max: the number of collectives that another rank may have started and this rank has not.
  CollectiveChannel(ProgressEngine& engine, Rank me, int ranks, std::uint64_t ahead_max, Selector selector);

  // -- for the thread that starts collectives --

  // Starts a collective, whose work is queued on `stream`. REQUIRES: at least two ranks.
  void begin(std::shared_ptr<CollectiveTask> const& collective, Stream const& stream);
  // Blocks until collective.done. Throws the error of the progress engine if it has failed, and PeerError after the
  // limit.
  void wait(CollectiveTask const& collective, WaitLimit const& limit);
  // Returns what selects the algorithms of floating-point collectives.
  Selector& selector() { return selector_; }
  // Returns the lines of Selector::explain(). Blocks until the thread that makes progress has written them.
  std::vector<std::string> wait_explain();
  // Returns whether a device fabric sums arrays of this device over the ranks. Throws if the progress engine has
  // failed.
  bool can_add_up(Device device) const;

  // -- for the thread that makes progress --

  void received(Rank from, std::string_view body) override;
  void closed_by(Rank peer) override { collectives_.closed_by(peer); }
  bool progress(bool) override { return collectives_.progress(); }
  bool idle() const override { return collectives_.idle(); }
  PendingPeers pending_peers() const override { return collectives_.pending_peers(); }
  std::string unmatched_call(Rank peer) const override { return collectives_.unmatched_call(peer); }

 private:
  void send_header(Rank to, std::uint64_t sequence, std::string header, std::size_t inline_bytes) override;
  void send(Stream& stream, Rank to, MessageId id, View<std::uint8_t const> data, std::shared_ptr<void const> keep,
            std::function<void()> then) override;
  void receive_bulk(Stream& stream, Rank from, MessageId id, std::size_t bytes, BulkTransport::Allocate allocate,
                    std::function<void()> then) override;
  bool can_allreduce(Device device) const override;
  void sum(Stream& stream, std::uint64_t sequence, FabricSum const& arrays, std::shared_ptr<void const> keep,
           std::function<void()> then) override;
  void count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) override;

  ProgressEngine& engine_;
  Messenger& messenger_;
  Selector selector_;
  Collectives collectives_;
};

// A message of the channel.
struct CollectiveMessage {
  std::uint64_t sequence = 0;  // of the collective
  std::string_view header;     // an encoded CollectiveHeader
};
std::string encode(CollectiveMessage const& message);
// The result refers to `body`. Throws SerializationError if `body` is not such a message.
CollectiveMessage decode_collective(std::string_view body);
// Returns the tag of a bulk transfer of a collective. It has only the low bits of the sequence number: collectives that
// are in flight together have close numbers.
std::uint64_t collective_tag(std::uint64_t sequence, std::uint64_t index);

}  // namespace gpups::comm
