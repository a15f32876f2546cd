// SPDX-License-Identifier: Apache-2.0
// The collectives of a group, as one of its ranks takes part in them over its messenger.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collectives/collective_transport.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/collectives/selection/selector.hpp"
#include "comm/progress/progress_engine.hpp"

namespace gpups::comm {

class CollectiveChannel final : public Channel, private CollectiveTransport {
 public:
  // Opens the channel. ahead_max: runs that a rank may have begun and another has not.
  CollectiveChannel(ProgressEngine& engine, Rank me, int ranks, std::uint64_t ahead_max, Selector selector);

  // -- for the thread that begins collectives --

  // REQUIRES: at least two ranks. The stream is for the collective's own work.
  void begin(std::shared_ptr<CollectiveTask> const& collective, Stream const& stream);
  // Blocks until collective.done. Throws what has gone wrong meanwhile.
  void wait(CollectiveTask const& collective, WaitLimit const& limit);
  // Which algorithms they take.
  Selector& selector() { return selector_; }
  std::vector<std::string> wait_explain();
  // Whether something adds up between memory of the device and that of the other ranks. Throws what has gone wrong.
  bool can_add_up(Device device) const;

  // -- for the thread that makes progress --

  void received(Rank from, std::string_view body) override;
  void closed_by(Rank peer) override { collectives_.closed_by(peer); }
  bool progress(bool) override { return collectives_.progress(); }
  bool idle() const override { return collectives_.idle(); }
  PendingPeers pending_peers() const override { return collectives_.pending_peers(); }

 private:
  void send_header(Rank to, std::uint64_t sequence, std::string header, std::size_t inline_bytes) override;
  void send(Stream& stream, Rank to, MessageId id, View<std::uint8_t const> data, std::shared_ptr<void const> keep,
            std::function<void()> then) override;
  void receive_bulk(Stream& stream, Rank from, MessageId id, std::size_t bytes, BulkTransport::Allocate allocate,
                    std::function<void()> then) override;
  bool can_allreduce(Device device) const override;
  void sum(Stream& stream, std::uint64_t sequence, View<float const> terms, View<float> sums,
           std::shared_ptr<void const> keep, std::function<void()> then) override;
  void count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) override;

  ProgressEngine& engine_;
  Messenger& messenger_;
  Selector selector_;
  Collectives collectives_;
};

// A message of the channel: a header, and of which run it is.
struct CollectiveMessage {
  std::uint64_t sequence = 0;
  std::string_view header;  // as comm/collectives/collective_header.hpp has it
};
std::string encode(CollectiveMessage const& message);
// Refers to the body. Throws WireError for what is no such message.
CollectiveMessage decode_collective(std::string_view body);
// The tag of a bulk transfer of a run: the runs that are under way together have close numbers.
std::uint64_t collective_tag(std::uint64_t sequence, std::uint64_t index);

}  // namespace gpups::comm
