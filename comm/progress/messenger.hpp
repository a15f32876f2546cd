// SPDX-License-Identifier: Apache-2.0
// Sends and receives the messages and the bulk data of all channels of a rank: waits for room, keeps what is under way
// alive, and counts every byte by peer and kind.
//
// A message is the number of its channel, a byte, and the channel's body. One without a body closes the channel: its
// sender sends nothing more on it.
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

// For the thread that makes progress, but for counters() and adds().
class Messenger {
 public:
  Messenger(Transport& transport, BulkTransport& bulk);

  // From now on the channel receives its messages; those that came earlier at once. Once for each number.
  void open(ChannelId id, Channel& channel);
  // The channel receives nothing more: what comes is dropped, and what it waited for is forgotten. The other ranks are
  // not told.
  void drop(ChannelId id);
  // The same, and the other ranks are told, once. REQUIRES: idle(id), where the channel was open.
  void close(ChannelId id);
  // null: it is not open.
  Channel* channel(ChannelId id) const { return end_of(id).channel; }
  bool is_closed(ChannelId id) const { return end_of(id).told; }

  // Throws PeerLost where the receiver has closed the channel, or has left. `bytes_of_kind` of the body are data of
  // that kind; the others count as control.
  void send(ChannelId id, Rank to, std::string const& body, TrafficKind kind, std::size_t bytes_of_kind);
  void send(ChannelId id, Rank to, std::string const& body) { send(id, to, body, &Traffic::control, 0); }
  // `keep` stays alive until the data has been taken, and then `then` runs in progress(); at once where there are no
  // bytes, and nothing is sent. REQUIRES: the tag has at most kTagBits.
  void send_data(ChannelId id, Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes,
                 TrafficKind kind, std::shared_ptr<void const> keep, std::function<void()> then);
  // `where` gives the memory, when the sender's data of just this size is at hand; `then` runs in progress() when the
  // data is there; at once where there are no bytes.
  void receive_data(ChannelId id, Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, TrafficKind kind,
                    BulkTransport::Allocate where, std::function<void()> then);

  // Whether sum_data() may be called for memory of the device.
  bool can_allreduce(Device device) const { return bulk_.can_allreduce(device); }
  // Adds up `terms` (n) of all ranks into `sums` (n), which `keep` owns; `then` runs in progress() when they are there;
  // at once for none. What travels is not seen: each rank counts what a ring would send to the next one.
  void sum_data(ChannelId id, Stream& stream, std::uint64_t tag, View<float const> terms, View<float> sums,
                TrafficKind kind, std::shared_ptr<void const> keep, std::function<void()> then);

  // Gives the next message to its channel; false: none has come.
  bool receive();
  // Sends what waits for room and ends transfers; true if anything moved.
  bool progress();
  // Nothing is waiting to be sent, and nothing of the channel is on its way.
  bool idle(ChannelId id) const;
  bool idle() const;
  // Nothing is called back any more, and what was kept for transfers goes. REQUIRES: the payload has gone.
  void forget_all();

  // So many bytes of the message that has come last from there were data of that kind.
  void received_within(Rank from, TrafficKind kind, std::size_t bytes) { counters_.received_within(from, kind, bytes); }
  // What was sent in so many bytes is `plain` bytes where nothing is coded or held back; see Stats::saved_bytes.
  void count_compression(TrafficKind kind, std::uint64_t plain, std::uint64_t sent) {
    if (plain > sent) counters_.add_saved(kind, plain - sent);
  }
  // So many bytes were sent of what has been counted as held back.
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
    bool dropped = false, told = false;
    std::vector<bool> closed_by;                     // by rank
    std::deque<std::pair<Rank, std::string>> early;  // came before the channel was opened, without the number
    std::map<Rank, Early> early_of;
    std::size_t open_transfers = 0;  // that this rank owes, or waits for
  };
  struct Pending {
    ChannelId id;
    std::optional<Rank> to;  // of a send
    bool is_owed = true;     // false: its receiver takes nothing any more
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
  // By rank: what the transport had no room for. Lists, because most are empty and an empty deque uses memory.
  std::vector<std::list<std::string>> outbox_;
  std::unordered_map<Transfer, Pending> pending_;
  TrafficCounters counters_;
};

}  // namespace gpups::comm
