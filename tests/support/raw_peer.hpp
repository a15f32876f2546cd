// SPDX-License-Identifier: Apache-2.0
// A group of two in one thread: rank 0 is for a store, rank 1 is bare wires, over which a test sends what it likes.
//
// Nothing ever waits: where rank 0 would, `on_idle` lets rank 1 act, and if that does nothing, the wait is over and
// rank 0 throws PeerError as it does when a peer has been silent for too long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/message.hpp"
#include "comm/collectives/collective_header.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/progress/channel.hpp"
#include "gpups/stream.hpp"

namespace gpups::test {

using comm::ChannelId;

class RawPeer {
 public:
  RawPeer();
  ~RawPeer();

  // For the store. It goes before the peer does.
  Group group() { return std::exchange(group_, Group(nullptr)); }

  // Of the store's channel.
  void send(cache::Message const& message) { send_on(ChannelId::kStore, cache::encode(message)); }
  // Of a run of a collective.
  void send(std::uint64_t run, comm::CollectiveHeader const& header) { send_header(run, encode(header)); }
  void send_header(std::uint64_t run, std::string const& header);
  // Any body, in a channel; none closes it.
  void send_on(ChannelId channel, std::string const& body);
  void send_bytes(std::string const& message);
  // Bulk data of the store's channel, unless another is named.
  void send_words(std::uint64_t tag, std::vector<std::uint64_t> const& words, ChannelId channel = ChannelId::kStore) {
    offer(tag_of(channel, tag), words, words.size() * 8);
  }
  void send_data(std::uint64_t tag, std::size_t bytes, unsigned char fill = 0, ChannelId channel = ChannelId::kStore);
  void send_data(std::uint64_t tag, std::vector<std::uint8_t> const& bytes);
  // Takes what rank 0 sends under a tag, to nowhere; nothing new where it is wanted already.
  void receive_data(std::uint64_t tag, std::size_t bytes, ChannelId channel = ChannelId::kStore);
  // The next message of rank 0's.
  struct Received {
    ChannelId channel{};
    std::string body{};                                     // without the channel's number
    std::optional<cache::Message> of_store{};               // what it says, where it is the store's
    std::optional<comm::CollectiveHeader> of_collective{};  // likewise
  };
  std::optional<Received> receive_any();
  // The same where it is the store's.
  std::optional<cache::Message> receive();
  bool progress() { return bulk_->progress(); }
  void leave(std::string const& error) { error.empty() ? transport_->leave() : transport_->fail(Rank{1}, error); }

  // Rank 0 does all that it can do without hearing more.
  void let_turn() { turn_all_(); }

  std::function<bool()> on_idle = [] { return false; };
  std::size_t bytes_sent() const { return bytes_sent_; }

 private:
  void offer(std::uint64_t tag, std::vector<std::uint64_t> words, std::size_t bytes);

  Group group_{nullptr};
  Stream stream_;
  std::deque<std::vector<std::uint64_t>> data_;  // what is under way
  std::unique_ptr<comm::Transport> transport_;
  std::unique_ptr<comm::BulkTransport> bulk_;
  std::set<std::uint64_t> wanted_;
  std::size_t bytes_sent_ = 0;
  std::function<void()> turn_all_;
};

}  // namespace gpups::test
