// SPDX-License-Identifier: Apache-2.0
// Sends and receives the messages and bulk data of all channels of a rank. It queues messages until the transport has
// room, keeps the memory of transfers alive, and counts every byte by peer and kind.
//
// A message consists of the number of its channel, a byte, and the body of the channel. A message without a body closes
// the channel: its sender sends nothing more on it.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/progress/channel.hpp"
#include "comm/progress/traffic_counters.hpp"
#include "comm/transport/transport.hpp"

namespace gpups::comm {

// The messenger of one rank. Used by the thread that makes progress, except for counters() and can_allreduce().
class Messenger {
 public:
  Messenger(Transport& transport, BulkTransport& bulk);

  // Opens a channel: it receives its messages from now on, and those that came earlier at once. Once for each number.
  void open(ChannelId id, Channel& channel);
  // Drops a channel: later messages are ignored, and callbacks of its transfers are not called. The other ranks are not
  // informed.
  void drop(ChannelId id);
  // The same, and informs the other ranks, once. REQUIRES: idle(id), if the channel was open.
  void close(ChannelId id);
  // Returns null if the channel is not open.
  Channel* channel(ChannelId id) const { return end_of(id).channel; }
  // Returns whether messages of the rank wait for the channel to be opened.
  bool has_early_messages(ChannelId id, Rank from) const { return end_of(id).early_of.contains(from); }
  // Returns whether all other ranks have closed all channels: they send and receive nothing more.
  bool closed_by_all() const;

  // Sends a message. `bytes_of_kind` bytes of the body count as data of `kind`, the others as control. Throws PeerLost
  // if the receiver has closed the channel or has left.
  void send(ChannelId id, Rank to, std::string const& body, TrafficKind kind, std::size_t bytes_of_kind);
  void send(ChannelId id, Rank to, std::string const& body) { send(id, to, body, &Traffic::control, 0); }
  // Sends bulk data. `keep` stays alive until the data has been read; then progress() calls `then`. With 0 bytes
  // nothing is sent, and `then` is called at once. REQUIRES: the tag has at most kTagBits.
  void send_data(ChannelId id, Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes,
                 TrafficKind kind, std::shared_ptr<void const> keep, std::function<void()> then);
  // Receives bulk data. `where` returns the memory, and is called when the sender has offered exactly `bytes`.
  // progress() calls `then` when the data is there; with 0 bytes it is called at once.
  void receive_data(ChannelId id, Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, TrafficKind kind,
                    BulkTransport::Allocate where, std::function<void()> then);

  // Returns whether sum_data() may be called for memory of the device. Any thread.
  bool can_allreduce(Device device) const { return bulk_.can_allreduce(device); }
  // Sums `terms`, (n), of all ranks into `sums`, (n), by the device fabric. `keep` owns both. progress() calls `then`
  // when the sums are there; at once if n is 0. The bytes of the fabric are not visible: each rank counts what it would
  // send to the next rank of a ring.
  void sum_data(ChannelId id, Stream& stream, std::uint64_t tag, FabricSum const& arrays, TrafficKind kind,
                std::shared_ptr<void const> keep, std::function<void()> then);

  // Gives the next message to its channel. Returns false if there is none.
  bool receive();
  // Sends queued messages and ends transfers. Returns whether anything was done.
  bool progress();
  // Returns whether no message is queued and no transfer of the channel is in flight.
  bool idle(ChannelId id) const;
  // Returns whether this is true of all channels.
  bool idle() const;
  // Drops all messages and transfers: nothing is called any more, and memory that was kept is released. REQUIRES: the
  // bulk transport was destroyed.
  void drop_all();

  // Counts `bytes` of the last message from that rank as data of `kind`.
  void received_within(Rank from, TrafficKind kind, std::size_t bytes) { counters_.received_within(from, kind, bytes); }
  // Counts that `sent` bytes were sent in place of `plain` bytes, because of compression or residuals; see
  // Stats::saved_bytes.
  void count_compression(TrafficKind kind, std::uint64_t plain, std::uint64_t sent) {
    if (plain > sent) counters_.add_saved(kind, plain - sent);
  }
  // Counts that `sent` bytes were sent of residuals that were counted as saved.
  void count_flushed(TrafficKind kind, std::uint64_t sent) { counters_.subtract_saved(kind, sent); }
  // Any thread.
  TrafficCounters const& counters() const { return counters_; }

 private:
  // This rank's end of a channel.
  struct ChannelState {
    struct Early {
      std::size_t messages = 0, bytes = 0;
    };
    Channel* channel = nullptr;
    bool dropped = false, close_sent = false;
    std::vector<bool> closed_by;                     // by rank
    std::deque<std::pair<Rank, std::string>> early;  // bodies that came before the channel was opened
    std::map<Rank, Early> early_of;
    std::size_t open_transfers = 0;  // transfers to send or to receive
  };
  struct Pending {
    ChannelId id;
    std::optional<Rank> to;  // the receiver of a send
    bool is_owed = true;     // false after its receiver has closed the channel
    std::shared_ptr<void const> keep;
    std::function<void()> then;
  };

  ChannelState& end_of(ChannelId id) { return ends_[static_cast<std::size_t>(id)]; }
  ChannelState const& end_of(ChannelId id) const { return ends_[static_cast<std::size_t>(id)]; }
  void post(Rank to, std::string message);
  bool try_send(Rank to, std::string const& message);
  void keep_early(ChannelState& end, Rank from, std::string_view body);
  void deliver(ChannelId id, Rank from, std::string_view body);
  void add(Transfer transfer, Pending pending);

  Transport& transport_;
  BulkTransport& bulk_;
  std::array<ChannelState, kChannels> ends_;
  // By rank: messages for which the transport had no room. Lists, because most are empty and an empty deque uses
  // memory.
  std::vector<std::list<std::string>> outbox_;
  std::unordered_map<Transfer, Pending> pending_;
  TrafficCounters counters_;
};

}  // namespace gpups::comm
